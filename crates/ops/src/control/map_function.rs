//! MapDefun: calls a function for each entry of the first dimension, and stacks the results.

use crate::array::concat::stacked;
use graph::{AttrValue, ShapeQuery};
use op::{Callable, Ctx, Done, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, StepEnv, Value, later};
use parking_lot::Mutex;
use status::{Error, Result, exhausted, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "MapDefun(arguments: [Targuments], captured_inputs: [Tcaptured]) -> output: [output_types]; \
          Targuments: list(type) >= 1; Tcaptured: list(type) >= 0 = []; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; f: func; max_intra_op_parallelism: int = 1",
    shape: mapped_shapes,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn mapped_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (AttrValue::List(shapes), AttrValue::List(arguments)) =
        (query.attr("output_shapes")?, query.attr("Targuments")?)
    else {
        return op::shapes::unknown(query);
    };
    if shapes.shapes.len() != query.outputs {
        return Err(invalid!(
            "`output_shapes` must be the same length as `output_types` ({} vs. {})",
            shapes.shapes.len(),
            query.outputs
        ));
    }
    let mut count = -1;
    for (i, input) in query.inputs.iter().take(arguments.types.len()).enumerate() {
        match input.dims() {
            Some([]) => {
                return Err(invalid!("Arguments must have rank at least 1. Input {i} has rank of 0."));
            }
            Some(&[dim, ..]) if dim >= 0 && count >= 0 && dim != count => {
                return Err(invalid!("Arguments must have the same dimension 0."));
            }
            Some(&[dim, ..]) => count = count.max(dim),
            None => {}
        }
    }
    let with_count = |shape: &PartialShape| match shape.dims() {
        Some(dims) => PartialShape::new(&[&[count], dims].concat()),
        None => PartialShape::unknown(),
    };
    Ok(shapes.shapes.iter().map(with_count).collect())
}

/// What a node says about its calls.
struct Form {
    function: Arc<dyn Callable>,
    arguments: usize,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let form = Form {
        function: setup.function("f")?,
        arguments: setup.types("Targuments")?.len(),
        types: setup.types("output_types")?,
        shapes: setup.list("output_shapes")?.shapes.clone(),
    };
    if form.types.len() != form.shapes.len() {
        return Err(invalid!("Length of output_shapes and output_types must match."));
    }
    let form = Arc::new(form);
    Ok(later(move |ctx, inputs, done| start(&form, ctx, inputs, done)))
}

fn start(form: &Arc<Form>, ctx: &Ctx<'_>, mut inputs: Inputs, done: Done) {
    let read = inputs.tensors_from(0).and_then(|mut arguments| {
        let captured = arguments.split_off(form.arguments.min(arguments.len()));
        Ok((leading_dimension(&arguments)?, arguments, captured))
    });
    let (count, arguments, captured) = match read {
        Ok(read) => read,
        Err(error) => return done(Err(error)),
    };
    let mut results = Vec::new();
    if results.try_reserve_exact(count).is_err() {
        return done(Err(exhausted!("OOM when mapping a function over {count} entries")));
    }
    results.resize_with(count, || None);
    if count == 0 {
        return done(stack(form, ctx, results));
    }
    let env = ctx.env.clone();
    let state = Mutex::new(State { next: 0, running: 0, results, failure: None, done: Some(done) });
    let (frame, iteration) = (ctx.frame, ctx.iteration);
    let calls = Arc::new(Calls { form: form.clone(), env, frame, iteration, arguments, captured, count, state });
    for _ in 0..count.min(calls.env.pool.threads() * 2) {
        calls.clone().next();
    }
}

fn leading_dimension(arguments: &[Tensor]) -> Result<usize> {
    let mut count = None;
    for (i, argument) in arguments.iter().enumerate() {
        let Some(&dim) = argument.shape().first() else {
            return Err(invalid!("All inputs must have rank at least 1. Input {i} has a rank of 0."));
        };
        let count = *count.get_or_insert(dim);
        if dim != count {
            return Err(invalid!(
                "All inputs must have the same dimension 0. Input {i} has leading dimension {dim}, while all previous \
                 inputs have leading dimension {count}"
            ));
        }
    }
    Ok(count.unwrap_or(0))
}

/// The calls of one run of the node. A few run at a time, and each that ends starts the next.
struct Calls {
    form: Arc<Form>,
    env: Arc<StepEnv>,
    frame: u64,
    iteration: u64,
    arguments: Vec<Tensor>,
    captured: Vec<Tensor>,
    count: usize,
    state: Mutex<State>,
}

struct State {
    next: usize,
    running: usize,
    results: Vec<Option<Outputs>>,
    failure: Option<Error>,
    done: Option<Done>,
}

impl Calls {
    fn next(self: Arc<Self>) {
        let mut state = self.state.lock();
        if state.next == self.count || state.failure.is_some() {
            return;
        }
        let index = state.next;
        (state.next, state.running) = (index + 1, state.running + 1);
        drop(state);
        let inputs = match self.inputs(index) {
            Ok(inputs) => inputs,
            Err(error) => return self.ended(index, Err(error)),
        };
        let (calls, env) = (self.clone(), self.env.clone());
        let ctx = Ctx { env: &env, frame: self.frame, iteration: self.iteration };
        self.form.function.call(&ctx, inputs, Box::new(move |result| calls.ended(index, result)));
    }

    fn inputs(&self, index: usize) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for argument in &self.arguments {
            inputs.push(crate::data_structures::arithmetic::row(argument, index)?.into());
        }
        self.captured.iter().cloned().for_each(|tensor| inputs.push(tensor.into()));
        Ok(inputs)
    }

    fn ended(self: Arc<Self>, index: usize, result: Result<Outputs>) {
        let mut state = self.state.lock();
        state.running -= 1;
        match result {
            Ok(outputs) => state.results[index] = Some(outputs),
            Err(error) => _ = state.failure.get_or_insert(error),
        }
        let is_last = state.running == 0 && (state.next == self.count || state.failure.is_some());
        if !is_last {
            drop(state);
            let spawn = self.env.spawn.clone();
            return spawn(Box::new(move || self.next())); // not here: calls that end at once would recurse
        }
        let (done, failure) = (state.done.take(), state.failure.take());
        let results = std::mem::take(&mut state.results);
        drop(state);
        let Some(done) = done else { return };
        let ctx = Ctx { env: &self.env, frame: self.frame, iteration: self.iteration };
        done(match failure {
            Some(error) => Err(error),
            None => stack(&self.form, &ctx, results),
        });
    }
}

fn stack(form: &Form, ctx: &Ctx<'_>, results: Vec<Option<Outputs>>) -> Result<Outputs> {
    let mut columns: Vec<Vec<Tensor>> = vec![Vec::with_capacity(results.len()); form.types.len()];
    for outputs in results {
        let outputs = outputs.unwrap_or_default();
        if outputs.len() != columns.len() {
            return Err(invalid!("Mismatch in number of function outputs."));
        }
        for (column, value) in columns.iter_mut().zip(outputs) {
            column.push(value.read()?);
        }
    }
    let types = form.types.iter().zip(&form.shapes);
    let mut stacked = Outputs::new();
    for (index, (column, (dtype, shape))) in columns.into_iter().zip(types).enumerate() {
        stacked.push(Value::Tensor(stack_one(ctx, index, column, *dtype, shape)?));
    }
    Ok(stacked)
}

fn stack_one(ctx: &Ctx<'_>, index: usize, rows: Vec<Tensor>, dtype: DType, shape: &PartialShape) -> Result<Tensor> {
    if let Some(wrong) = rows.iter().find(|row| row.dtype() != dtype) {
        return Err(invalid!(
            "Mismatch in function return type and expected output type for output: {index} ({} instead of {dtype})",
            wrong.dtype()
        ));
    }
    let expected = match (rows.first(), shape.known()) {
        (_, Some(known)) => known,
        (Some(first), None) if shape.accepts(first.shape()) => first.shape().clone(),
        (Some(first), None) => return Err(mismatch(first, shape)),
        (None, None) => shape.dims().unwrap_or_default().iter().map(|&dim| dim.max(0) as usize).collect(),
    };
    expected.checked_elements()?;
    if let Some(wrong) = rows.iter().find(|row| *row.shape() != expected) {
        return Err(mismatch(wrong, &PartialShape::from(&expected)));
    }
    stacked(ctx.pool(), dtype, &rows, Shape::from([&[rows.len()], expected.dims()].concat()))
}

fn mismatch(row: &Tensor, expected: &PartialShape) -> Error {
    invalid!("Mismatch in function retval shape, {}, and expected output shape, {expected}.", row.shape())
}
