//! Parsing of Example messages by a description of their features.

use graph::{AttrList, AttrValue, Output};
use ops::array::constant;
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::{Bytes, DType, PartialShape, Tensor};

/// What a feature is parsed into.
///
/// # Examples
///
/// ```
/// use flowgrid_input::Feature;
/// use tensor::{DType, Tensor};
///
/// let pixels = Feature::fixed(DType::F32, &[28, 28]);
/// let label = Feature::fixed(DType::I64, &[]).or(Tensor::scalar(-1i64));
/// let words = Feature::sequence(DType::STRING);
/// # let _ = (pixels, label, words);
/// ```
#[derive(Clone, Debug)]
pub struct Feature {
    dtype: DType,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(PartialShape, Option<Tensor>),
    Sparse,
    Ragged,
}

impl Feature {
    /// A tensor of this shape. Examples without the feature are an error, unless there is a default.
    pub fn fixed(dtype: DType, shape: &[i64]) -> Feature {
        Feature { dtype, kind: Kind::Fixed(PartialShape::new(shape), None) }
    }

    /// As many values as an example has, as a vector; several examples are padded to the longest.
    pub fn sequence(dtype: DType) -> Feature {
        Feature::fixed(dtype, &[-1])
    }

    /// As many values as an example has, as a sparse tensor.
    pub fn sparse(dtype: DType) -> Feature {
        Feature { dtype, kind: Kind::Sparse }
    }

    /// As many values as an example has, as a ragged tensor.
    pub fn ragged(dtype: DType) -> Feature {
        Feature { dtype, kind: Kind::Ragged }
    }

    /// The type of its values.
    #[cfg(feature = "parquet")]
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same fixed feature with a default for examples that do not have it.
    pub fn or(mut self, default: Tensor) -> Feature {
        if let Kind::Fixed(_, value) = &mut self.kind {
            *value = Some(default);
        }
        self
    }
}

/// The parsed features of one example or of several.
///
/// # Examples
///
/// ```
/// use flowgrid_input::{Feature, parse_example};
/// use graph::Graph;
/// use io::example::{Example, Values};
/// use tensor::{DType, Tensor};
///
/// let graph = Graph::with_ops(data::registry());
/// let message = Example::new().with("words", Values::from("cat")).encode();
/// let message = ops::array::constant(&graph.root(), Tensor::string(message));
/// let features = parse_example(&message, &[("words", Feature::ragged(DType::STRING))])?;
/// let [values, splits] = features.ragged("words")?;
/// assert_eq!((values.dtype(), splits.dtype()), (DType::STRING, DType::I64));
/// assert!(features.dense("words").is_err());
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Features(BTreeMap<String, Vec<Output>>);

impl Features {
    /// The tensor of a fixed feature or a sequence.
    pub fn dense(&self, name: &str) -> Result<Output> {
        let [values] = self.get(name)?;
        Ok(values)
    }

    /// Indices, values and shape of a sparse feature.
    pub fn sparse(&self, name: &str) -> Result<[Output; 3]> {
        self.get(name)
    }

    /// Values and row splits of a ragged feature.
    pub fn ragged(&self, name: &str) -> Result<[Output; 2]> {
        self.get(name)
    }

    /// Removes the components of a feature.
    pub(crate) fn take(&mut self, name: &str) -> Vec<Output> {
        self.0.remove(name).unwrap_or_default()
    }

    fn get<const N: usize>(&self, name: &str) -> Result<[Output; N]> {
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let parts = self.0.get(name).cloned();
        let parts = parts.ok_or_else(|| invalid!("there is no feature '{name}'; there are {}", known.join(", ")))?;
        parts.try_into().map_err(|_| invalid!("feature '{name}' is of another kind: dense, sparse and ragged differ"))
    }
}

/// Parses an Example message, or each message of a vector.
///
/// ```
/// use flowgrid_input::{Feature, parse_example};
/// use graph::Graph;
/// use io::example::{Example, Values};
/// use session::Session;
/// use tensor::{DType, Tensor};
///
/// let graph = Graph::with_ops(data::registry());
/// let message = Example::new().with("x", Values::Floats(vec![0.5, 1.0])).encode();
/// let message = ops::array::constant(&graph.root(), Tensor::string(message));
/// let features = parse_example(&message, &[("x", Feature::fixed(DType::F32, &[2]))])?;
/// let x: [f32; 2] = Session::local(&graph).run(&features.dense("x")?)?;
/// assert_eq!(x, [0.5, 1.0]);
/// # Ok::<(), status::Error>(())
/// ```
pub fn parse_example(serialized: &Output, features: &[(&str, Feature)]) -> Result<Features> {
    let scope = serialized.scope();
    let of_kind = |wanted: fn(&Kind) -> bool| features.iter().filter(move |(_, feature)| wanted(&feature.kind));
    let dense: Vec<_> = of_kind(|kind| matches!(kind, Kind::Fixed(..))).collect();
    let sparse: Vec<_> = of_kind(|kind| matches!(kind, Kind::Sparse)).collect();
    let ragged: Vec<_> = of_kind(|kind| matches!(kind, Kind::Ragged)).collect();
    let names = |part: &[&(&str, Feature)]| -> Result<Output> {
        let names: Vec<Bytes> = part.iter().map(|(name, _)| Bytes::copy_from_slice(name.as_bytes())).collect();
        Ok(constant(scope, Tensor::from_strings([names.len()], names)?))
    };
    let types = |part: &[&(&str, Feature)]| type_list(part.iter().map(|(_, feature)| feature.dtype).collect());
    let defaults = dense.iter().map(|(_, feature)| Ok(constant(scope, default_of(feature)?)));
    let defaults = defaults.collect::<Result<Vec<Output>>>()?;
    let shapes = dense.iter().map(|(_, feature)| shape_of(feature)).collect();
    let no_names = constant(scope, Tensor::from_strings([0], Vec::new())?);
    let built = scope.op("ParseExampleV2").input(serialized).input(&no_names).input(&names(&sparse)?);
    let built = built.input(&names(&dense)?).input(&names(&ragged)?).inputs(&defaults);
    let built = built.attr("Tdense", types(&dense)).attr("num_sparse", sparse.len() as i64);
    let built = built.attr("sparse_types", types(&sparse)).attr("ragged_value_types", types(&ragged));
    let built = built.attr("ragged_split_types", type_list(vec![DType::I64; ragged.len()]));
    let shapes = AttrList { shapes, ..AttrList::default() };
    let outputs = built.attr("dense_shapes", AttrValue::from(shapes)).outputs();
    Ok(named(&outputs, [&sparse, &dense, &ragged]))
}

/// The outputs of the op by the names of the features: indices, values and shapes of all sparse ones, then the dense ones,
/// then values and splits of the ragged ones.
fn named(outputs: &[Output], [sparse, dense, ragged]: [&[&(&str, Feature)]; 3]) -> Features {
    let mut found = BTreeMap::new();
    let (first_dense, count) = (3 * sparse.len(), sparse.len());
    let at = |place: usize| outputs.get(place).cloned();
    for (place, (name, _)) in sparse.iter().enumerate() {
        found.insert(name.to_string(), [0, 1, 2].iter().filter_map(|part| at(place + part * count)).collect());
    }
    for (place, (name, _)) in dense.iter().enumerate() {
        found.insert(name.to_string(), at(first_dense + place).into_iter().collect());
    }
    let first_ragged = first_dense + dense.len();
    for (place, (name, _)) in ragged.iter().enumerate() {
        let parts = [first_ragged + place, first_ragged + ragged.len() + place];
        found.insert(name.to_string(), parts.into_iter().filter_map(at).collect());
    }
    Features(found)
}

/// The default of a dense feature: without elements if it is required, and one element for a sequence.
fn default_of(feature: &Feature) -> Result<Tensor> {
    match &feature.kind {
        Kind::Fixed(_, Some(default)) => Ok(default.clone()),
        Kind::Fixed(shape, None) if shape.dims().is_some_and(|dims| dims.first() == Some(&-1)) => {
            Tensor::zeros_of(feature.dtype, tensor::Shape::scalar())
        }
        _ => Tensor::zeros_of(feature.dtype, [0]),
    }
}

fn shape_of(feature: &Feature) -> PartialShape {
    match &feature.kind {
        Kind::Fixed(shape, _) => shape.clone(),
        _ => PartialShape::unknown(),
    }
}

fn type_list(types: Vec<DType>) -> AttrValue {
    AttrValue::from(AttrList { types, ..AttrList::default() })
}
