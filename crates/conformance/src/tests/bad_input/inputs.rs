//! Mutants of a node whose inputs are bad: ranks, sizes, values, and handles of another kind.

use super::edit::{Sample, constant, node};
use crate::values::{numbers, wide};
use graph::{AttrValue, NodeDef, Signature};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

/// A changed program with a description.
pub struct Mutant {
    pub what: String,
    pub sample: Sample,
}

/// A mutant.
pub fn mutant(what: String, sample: Sample) -> Mutant {
    Mutant { what, sample }
}

/// All mutants of the inputs of a node.
pub fn mutants(sample: &Sample, signature: &Signature) -> Vec<Mutant> {
    let Ok(types) = signature.input_types(sample.node()) else { return Vec::new() };
    let mut found = Vec::new();
    for (input, &dtype) in types.iter().enumerate().take(sample.data_inputs()) {
        let is_ref = dtype.base() != dtype;
        match dtype.base() {
            DType::RESOURCE => found.extend(resources(sample, input)),
            DType::VARIANT => found.extend(variants(sample, input)),
            dtype if is_ref => found.extend(references(sample, input, dtype)),
            dtype => found.extend(values(sample, input, dtype)),
        }
    }
    found.extend(together(sample, &types));
    found
}

fn values(sample: &Sample, input: usize, dtype: DType) -> Vec<Mutant> {
    let base = sample.input_value(input).filter(|value| value.dtype() == dtype);
    let mut found = Vec::new();
    for (number, (what, value)) in bad_values(dtype, base.as_ref()).into_iter().enumerate() {
        found.push(mutant(format!("input {input} is {what}"), sample.with_input(input, &value, true)));
        if number % 2 == 0 {
            found.push(mutant(format!("input {input} is constant {what}"), sample.with_input(input, &value, false)));
        }
    }
    found
}

/// Tensors of a type that differ from a valid one in shape or in elements.
fn bad_values(dtype: DType, base: Option<&Tensor>) -> Vec<(String, Tensor)> {
    let mut found: Vec<(String, Tensor)> = Vec::new();
    let mut add = |what: String, value: Option<Tensor>| found.extend(value.map(|value| (what, value)));
    let dims: Vec<usize> = base.map_or(vec![2], |base| base.shape().dims().to_vec());
    for shape in shapes(&dims) {
        add(format!("of shape {shape:?}"), shaped(dtype, &shape, base));
    }
    if dtype == DType::STRING {
        for text in texts() {
            let count = Shape::new(&dims).elements().max(1);
            let shown = text.escape_ascii().to_string();
            let shown: String = shown.chars().take(20).collect();
            add(format!("all \"{shown}\""), Tensor::from_strings(Shape::new(&dims), vec![text; count]).ok());
        }
        return found;
    }
    for extreme in extremes(dtype) {
        add(format!("all {extreme}"), numbers(dtype, Shape::new(&dims), &[extreme]).ok());
        for last in [false, true] {
            let which = if last { "last" } else { "first" };
            add(format!("with {which} {extreme}"), base.and_then(|base| with_one(base, extreme, last)));
        }
    }
    found
}

/// Shapes near a valid one, and shapes of other ranks.
fn shapes(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![vec![], vec![0], vec![1], vec![3], vec![2, 2], vec![1, 1, 1, 1, 1]];
    all.extend([vec![2, 0, 1, 1, 3], vec![1; 9], vec![0; dims.len()], vec![0, 3], vec![3, 0]]);
    for axis in 0..dims.len() {
        for size in [0, 1, dims[axis] + 1] {
            let mut changed = dims.to_vec();
            changed[axis] = size;
            all.push(changed);
        }
    }
    if !dims.is_empty() {
        all.push(dims[1..].to_vec());
        all.push(dims[..dims.len() - 1].to_vec());
    }
    all.push([&[1], dims].concat());
    all.push([&[2], dims].concat());
    all.push([dims, &[1]].concat());
    let mut distinct: Vec<Vec<usize>> = Vec::new();
    for shape in all {
        if shape != dims && !distinct.contains(&shape) {
            distinct.push(shape);
        }
    }
    distinct
}

/// A tensor of this shape with the elements of another one, repeated.
fn shaped(dtype: DType, shape: &[usize], base: Option<&Tensor>) -> Option<Tensor> {
    let shape = Shape::new(shape);
    if dtype == DType::STRING {
        let texts: Vec<Bytes> = base.and_then(|base| Some(base.strings().ok()?.to_vec())).unwrap_or_default();
        let texts = if texts.is_empty() { vec![Bytes::from("a")] } else { texts };
        let elements = texts.iter().cycle().take(shape.elements()).cloned().collect();
        return Tensor::from_strings(shape, elements).ok();
    }
    numbers(dtype, shape, &plain_values(base)).ok()
}

fn plain_values(base: Option<&Tensor>) -> Vec<f64> {
    let values = base.and_then(|base| wide(base).ok()).unwrap_or_default();
    if values.is_empty() { vec![1.0] } else { values.iter().map(|value| value.re).collect() }
}

/// The same tensor with another first or last element.
fn with_one(base: &Tensor, value: f64, last: bool) -> Option<Tensor> {
    let mut values = plain_values(Some(base));
    if base.elements() < 2 || base.dtype().is_complex() {
        return None;
    }
    let place = if last { values.len() - 1 } else { 0 };
    values[place] = value;
    numbers(base.dtype(), base.shape().clone(), &values).ok()
}

/// Values at the edges of a type.
fn extremes(dtype: DType) -> Vec<f64> {
    let two = |power: i32| 2f64.powi(power);
    if dtype == DType::BOOL {
        return vec![0.0, 1.0];
    }
    if dtype.is_floating() || dtype.is_complex() {
        return vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e38, two(62)];
    }
    if dtype.size() < 4 || dtype == DType::QI32 {
        return vec![-two(31), -1.0, 0.0, two(31)];
    }
    let mut all = vec![-two(31), -1.0, 0.0, 7.0, two(16), two(31) - 1.0];
    if dtype.size() == 8 {
        all.extend([-two(63), two(32), two(62), two(63)]);
    }
    all
}

/// Strings that are no names, numbers, records or images.
fn texts() -> Vec<Bytes> {
    let garbage: Vec<u8> = (0..97u32).map(|i| (i * 181 % 256) as u8).collect();
    vec![
        Bytes::new(),
        Bytes::from("\u{e4}\u{1f600}"),
        Bytes::from_static(b"\xff\x00\x80\x0a\x7f"),
        Bytes::from(garbage),
        Bytes::from("9".repeat(70_000)),
        Bytes::from("-1"),
        Bytes::from("nothing/here"),
        Bytes::from("%d{}[](*?\\"),
    ]
}

/// All inputs at once: empty, with an empty first dimension, of one more dimension.
fn together(sample: &Sample, types: &[DType]) -> Vec<Mutant> {
    let changes: [(&str, fn(&[usize]) -> Vec<usize>); 4] = [
        ("empty", |_| vec![0]),
        ("without a batch", |dims| if dims.is_empty() { vec![] } else { [&[0], &dims[1..]].concat() }),
        ("of another rank", |dims| [&[1], dims].concat()),
        ("scalars", |_| vec![]),
    ];
    let mut found = Vec::new();
    for (what, change) in changes {
        let mut changed = sample.clone();
        for (input, &dtype) in types.iter().enumerate().take(sample.data_inputs()) {
            let Some(base) = sample.input_value(input).filter(|value| value.dtype() == dtype) else { continue };
            if let Some(value) = shaped(dtype, &change(base.shape().dims()), Some(&base)) {
                changed = changed.with_input(input, &value, true);
            }
        }
        found.push(mutant(format!("inputs are {what}"), changed));
    }
    found
}

fn float_attrs(shape: &[i64]) -> [(&'static str, AttrValue); 2] {
    [("dtype", DType::F32.into()), ("shape", PartialShape::new(shape).into())]
}

/// Handles of other kinds, of nothing, of several things, and of a thing that is destroyed.
fn resources(sample: &Sample, input: usize) -> Vec<Mutant> {
    let floats = AttrValue::from(vec![DType::F32]);
    let unknown = AttrValue::from(vec![PartialShape::unknown()]);
    let types = |name| {
        [(name, floats.clone()), (if name == "output_types" { "output_shapes" } else { "shapes" }, unknown.clone())]
    };
    let table = [("key_dtype", DType::STRING.into()), ("value_dtype", DType::I64.into())];
    let kinds = [
        ("a variable", node("bad", "VarHandleOp", &[], &float_attrs(&[2]))),
        ("a table", node("bad", "MutableHashTableV2", &[], &table)),
        ("a queue", node("bad", "FIFOQueueV2", &[], &types("component_types"))),
        (
            "an iterator",
            node(
                "bad",
                "IteratorV2",
                &[],
                &[
                    ("shared_name", "it".into()),
                    ("container", "".into()),
                    types("output_types")[0].clone(),
                    types("output_types")[1].clone(),
                ],
            ),
        ),
        ("a lock", node("bad", "MutexV2", &[], &[])),
    ];
    let mut found: Vec<Mutant> = Vec::new();
    for (what, def) in kinds {
        let output = if def.op == "MutableHashTableV2" { "table_handle" } else { "handle" };
        found.push(mutant(format!("input {input} is {what}"), sample.with_input_node(input, vec![def], output)));
    }
    if !sample.in_body() {
        let none = Tensor::from_handles(Shape::new(&[0]), Vec::new()).ok();
        let blank = Tensor::zeros_of(DType::RESOURCE, Shape::scalar()).ok();
        let two = Tensor::zeros_of(DType::RESOURCE, Shape::new(&[2])).ok();
        for (what, value) in [("no handle", none), ("a blank handle", blank), ("two blank handles", two)] {
            let Some(value) = value else { continue };
            found.push(mutant(format!("input {input} is {what}"), sample.with_input(input, &value, true)));
        }
        found.push(mutant(format!("input {input} is destroyed"), destroyed(sample, input)));
    }
    found
}

/// The same sample, in which the thing behind a handle is destroyed before the node runs.
fn destroyed(sample: &Sample, input: usize) -> Sample {
    let handle = sample.node().inputs[input].clone();
    let destroy = node("bad_destroy", "DestroyResourceOp", &[&handle], &[]);
    let mut changed = sample.with(|node| node.inputs.push("^bad_destroy".to_string()));
    changed.program.graph.nodes.push(destroy.into());
    changed
}

/// Variants of other kinds.
fn variants(sample: &Sample, input: usize) -> Vec<Mutant> {
    let two = |name: &str| constant(name, &Tensor::scalar(2i64));
    let size = |name: &str, value: i32| constant(name, &Tensor::scalar(value));
    let in_body = sample.in_body();
    let at = |name: &str| if in_body { format!("{name}:output:0") } else { name.to_string() };
    let make = |op: &str, inputs: &[&str], attrs: &[(&str, AttrValue)]| -> NodeDef {
        let inputs: Vec<String> = inputs.iter().map(|input| at(input)).collect();
        node("bad", op, &inputs.iter().map(String::as_str).collect::<Vec<_>>(), attrs)
    };
    let dataset = [("output_types", vec![DType::I64].into()), ("output_shapes", vec![PartialShape::scalar()].into())];
    let list = [("element_dtype", DType::F32.into()), ("shape_type", DType::I32.into())];
    let kinds: Vec<(&str, Vec<NodeDef>)> = vec![
        ("handle", vec![two("b1"), two("b2"), two("b3"), make("RangeDataset", &["b1", "b2", "b3"], &dataset)]),
        ("handle", vec![size("b1", -1), size("b2", 3), make("TensorListReserve", &["b1", "b2"], &list)]),
        ("handle", vec![size("b1", -1), size("b2", 3), make("EmptyTensorList", &["b1", "b2"], &list)]),
        ("handle", vec![make("EmptyTensorMap", &[], &[])]),
        ("optional", vec![make("OptionalNone", &[], &[])]),
    ];
    let mut found: Vec<Mutant> = Vec::new();
    for (output, nodes) in kinds {
        let op = nodes.last().map(|node| node.op.clone()).unwrap_or_default();
        found.push(mutant(format!("input {input} is of {op}"), sample.with_input_node(input, nodes, output)));
    }
    for dims in [vec![], vec![0], vec![2], vec![1, 1, 1, 1, 1]] {
        let Some(value) = Tensor::zeros_of(DType::VARIANT, Shape::new(&dims)).ok().filter(|_| !in_body) else {
            continue;
        };
        found.push(mutant(format!("input {input} is blank {dims:?}"), sample.with_input(input, &value, true)));
    }
    found
}

/// Variables without a value, and of other shapes; for strings the handles of other things too.
fn references(sample: &Sample, input: usize, dtype: DType) -> Vec<Mutant> {
    let mut found: Vec<Mutant> = Vec::new();
    let variable = |shape: &[i64]| {
        node("bad", "VariableV2", &[], &[("dtype", dtype.into()), ("shape", PartialShape::new(shape).into())])
    };
    found.push(mutant(
        format!("input {input} has no value"),
        sample.with_input_node(input, vec![variable(&[2])], "ref"),
    ));
    let shapes: [&[usize]; 5] = [&[], &[0], &[7], &[1, 1, 1, 1, 1], &[2, 0, 3]];
    for shape in shapes {
        let Some(value) = shaped(dtype, shape, None).filter(|_| !sample.in_body()) else { continue };
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        let mut changed = sample.with_input_node(input, vec![constant("bad_value", &value), variable(&dims)], "ref");
        let assign = node("bad_assign", "Assign", &["bad", "bad_value"], &[("T", dtype.into())]);
        changed.program.graph.nodes.push(assign.into());
        let first = crate::Step { targets: vec!["bad_assign".to_string()], ..crate::Step::default() };
        changed.program.steps.insert(0, first);
        found.push(mutant(format!("input {input} is a variable of shape {shape:?}"), changed));
    }
    if dtype == DType::STRING {
        let table = [("key_dtype", DType::STRING.into()), ("value_dtype", DType::I64.into())];
        let types = [("component_types", vec![DType::F32].into())];
        let kinds = [
            ("MutableHashTable", &table[..], "table_handle"),
            ("FIFOQueue", &types[..], "handle"),
            ("Barrier", &types[..], "handle"),
        ];
        for (op, attrs, output) in kinds {
            let added = vec![node("bad", op, &[], attrs)];
            found.push(mutant(format!("input {input} is of {op}"), sample.with_input_node(input, added, output)));
        }
    }
    found
}
