//! Runs a pipeline outside the graphs of the program.

use crate::Dataset;
use graph::{Graph, ImportOptions, Node, Output};
use session::{FromTensor, Session};
use status::{Code, Result, internal};
use std::marker::PhantomData;
use tensor::Tensor;

/// The elements of a dataset, as the tensors of their components. Ends at the end of the dataset, or after an error.
///
/// # Examples
///
/// ```
/// use flowgrid_input::{Dataset, Elements};
/// use graph::Graph;
///
/// let graph = Graph::with_ops(data::registry());
/// let elements: Elements = Dataset::range(&graph.root(), 0..3).batch(2).iter()?;
/// let sizes: Vec<usize> = elements.map(|batch| Ok(batch?[0].shape().elements())).collect::<status::Result<_>>()?;
/// assert_eq!(sizes, [2, 1]);
/// # Ok::<(), status::Error>(())
/// ```
pub struct Elements {
    session: Session,
    next: Vec<Output>,
    ended: bool,
}

/// The elements of a dataset of one component as values of the program.
///
/// # Examples
///
/// ```
/// use flowgrid_input::{Dataset, ElementValues};
/// use graph::Graph;
///
/// let graph = Graph::with_ops(data::registry());
/// let mut numbers: ElementValues<i64> = Dataset::range(&graph.root(), 5..7).values()?;
/// assert_eq!((numbers.next().transpose()?, numbers.count()), (Some(5), 1));
/// # Ok::<(), status::Error>(())
/// ```
pub struct ElementValues<T> {
    elements: Elements,
    value: PhantomData<fn() -> T>,
}

impl Dataset {
    /// Runs the pipeline in this process, from its beginning. The graph of the dataset does not change.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..6).map(|x: Output| (x.clone(), &x * 2.0)).batch(3);
    /// for batch in numbers.iter()? {
    ///     let [x, doubled] = &batch?[..] else { panic!("two components") };
    ///     assert_eq!(x.values::<i64>()?[0] * 2, doubled.values::<i64>()?[0]);
    /// }
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn iter(&self) -> Result<Elements> {
        let graph = copy(self.scope().graph())?;
        let handle = Node::find(&graph.root(), &self.handle().node().name());
        let handle = handle.ok_or_else(|| internal!("{} is not in its graph", self.handle().name()))?;
        let handle = handle.output(self.handle().index());
        let own = Dataset::from_output(handle, self.types().to_vec(), self.shapes().to_vec());
        let iterator = own.make_initializable_iterator();
        let next = iterator.next::<Vec<Output>>()?;
        let session = Session::local(&graph);
        if let Some(initializer) = iterator.initializer() {
            session.execute(initializer)?;
        }
        Ok(Elements { session, next, ended: false })
    }

    /// As `iter`, for elements of one component: `values::<f32>()`, `values::<Vec<String>>()`.
    pub fn values<T: FromTensor>(&self) -> Result<ElementValues<T>> {
        Ok(ElementValues { elements: self.iter()?, value: PhantomData })
    }
}

fn copy(graph: &Graph) -> Result<Graph> {
    let copy = Graph::with_ops(graph.ops().clone());
    copy.import(&graph.to_def()?, &ImportOptions::default())?;
    Ok(copy)
}

impl Iterator for Elements {
    type Item = Result<Vec<Tensor>>;

    fn next(&mut self) -> Option<Result<Vec<Tensor>>> {
        if self.ended {
            return None;
        }
        let fetches: Vec<&Output> = self.next.iter().collect();
        let element = self.session.run::<Vec<Tensor>>(&fetches[..]);
        self.ended = element.is_err();
        match element {
            Err(error) if error.code == Code::OutOfRange => None,
            element => Some(element),
        }
    }
}

impl<T: FromTensor> Iterator for ElementValues<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let element = self.elements.next()?;
        Some(element.and_then(|components| match <[Tensor; 1]>::try_from(components) {
            Ok([component]) => T::from_tensor(component),
            Err(components) => Err(status::invalid!(
                "The elements have {} components; `iter` returns them, `values` is for one",
                components.len()
            )),
        }))
    }
}
