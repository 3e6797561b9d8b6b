//! A variable in parts, each of which may be on a task of its own.

use super::{SaveSlice, Variable, VariableBuilder};
use crate::ScopeOps;
use graph::{Output, Scope};
use ops::raw;
use status::invalid;
use tensor::Shape;

/// A variable that is split along one axis into parts called `<name>/part_0`, `<name>/part_1`, … A checkpoint
/// holds it as one.
#[derive(Clone)]
pub struct PartitionedVariable {
    scope: Scope,
    name: String,
    axis: usize,
    parts: Vec<Variable>,
}

impl PartitionedVariable {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The axis along which it is split.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// The shape of the whole.
    pub fn shape(&self) -> Shape {
        let slice = self.parts.first().and_then(|part| part.slice());
        slice.map_or(Shape::scalar(), |slice| slice.full_shape.clone())
    }

    /// The variable of this name that is in the graph, if there is one.
    pub(super) fn find(scope: &Scope, name: &str) -> Option<PartitionedVariable> {
        let part = |place| Variable::find(scope, &format!("{name}/part_{place}"));
        let parts: Vec<Variable> = (0..).map_while(part).collect();
        let slices: Vec<&SaveSlice> = parts.iter().map_while(|part| part.slice()).collect();
        let first = slices.first()?;
        let split = |axis: &usize| first.shape.dims()[*axis] < first.full_shape.dims()[*axis];
        let axis = (0..first.full_shape.rank()).find(split).unwrap_or(0);
        Some(PartitionedVariable { scope: scope.clone(), name: name.to_string(), axis, parts })
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Variable] {
        &self.parts
    }

    /// The whole value, as one tensor.
    pub fn value(&self) -> Output {
        let values: Vec<Output> = self.parts.iter().map(|part| part.value().seen_from(&self.scope)).collect();
        if let [value] = &values[..] {
            return value.clone();
        }
        let inside = self.scope.reenter(&format!("{}/ConcatPartitions", self.name));
        let axis = inside.constant(self.axis as i32);
        let joined = raw::concat_v2(&values, &axis).named("concat").output();
        raw::identity(&joined.seen_from(&self.scope.reenter(""))).named(&self.name).output()
    }
}

impl VariableBuilder {
    /// Makes it in `count` parts along an axis, as equal as possible, the larger ones first. Needs a shape.
    pub fn partitioned(self, axis: usize, count: usize) -> PartitionedVariable {
        let inside = self.scope.named(&self.name);
        let name = inside.prefix().trim_end_matches('/').to_string();
        let full = self.value.as_ref().and_then(|value| value.shape().known()).unwrap_or(self.shape.clone());
        let scope = self.scope.clone();
        if axis >= full.rank() || count == 0 || count > full.dims()[axis] {
            scope
                .graph()
                .fail(invalid!("Variable {name} of shape {full} cannot be split into {count} along axis {axis}"));
            return PartitionedVariable { scope, name, axis, parts: Vec::new() };
        }
        let (size, larger) = (full.dims()[axis] / count, full.dims()[axis] % count);
        let mut begin = 0;
        let mut parts = Vec::with_capacity(count);
        for place in 0..count {
            let mut slice = SaveSlice {
                full_name: name.clone(),
                full_shape: full.clone(),
                offset: vec![0; full.rank()],
                shape: full.clone(),
            };
            slice.offset[axis] = begin;
            slice.shape.dims_mut()[axis] = size + usize::from(place < larger);
            begin += slice.shape.dims()[axis];
            parts.push(self.part(&inside, place, slice));
        }
        PartitionedVariable { scope, name, axis, parts }
    }

    fn part(&self, inside: &Scope, place: usize, slice: SaveSlice) -> Variable {
        let mut builder = self.clone();
        builder.scope = inside.clone();
        builder.name = format!("part_{place}");
        // How much numbers are scaled depends on the whole variable.
        builder.initializer = self.initializer.for_part(&slice.full_shape);
        let whole = match &self.initializer {
            crate::Initializer::Value(value) => Some(inside.constant(value)),
            _ => self.value.clone(),
        };
        builder.value = whole.map(|whole| cut(&whole.seen_from(inside), &slice));
        builder.shape = slice.shape.clone();
        builder.slice = Some(slice);
        builder.build()
    }
}

/// The part of a tensor that a slice means.
fn cut(whole: &Output, slice: &SaveSlice) -> Output {
    let numbers = |dims: &[usize]| dims.iter().map(|&dim| dim as i32).collect::<Vec<_>>();
    let scope = whole.scope();
    let (begin, size) = (scope.constant(numbers(&slice.offset)), scope.constant(numbers(slice.shape.dims())));
    raw::slice(whole, &begin, &size).output()
}
