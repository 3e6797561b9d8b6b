//! Mutants of a node whose attributes are bad: numbers, lists, shapes, types, functions.

use super::edit::Sample;
use super::functions;
use super::inputs::{Mutant, mutant};
use crate::values::{numbers, wide};
use graph::{ArgType, AttrDef, AttrKind, AttrList, AttrValue, Signature};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor};

/// All mutants of the attributes of a node.
pub fn mutants(sample: &Sample, signature: &Signature) -> Vec<Mutant> {
    let mut found = Vec::new();
    for attr in &signature.attrs {
        if attr.kind == AttrKind::Type && !attr.list {
            found.extend(other_types(sample, signature, attr));
            continue;
        }
        let value = sample.node().attrs.get(&attr.name).or(attr.default.as_ref());
        let bad = if attr.list { lists(attr, value) } else { singles(sample, attr) };
        for value in bad {
            let what = format!("{} is {}", attr.name, shown(&value));
            found.push(mutant(what, sample.with_attr(&attr.name, value)));
        }
    }
    found
}

fn shown(value: &AttrValue) -> String {
    match value {
        AttrValue::List(list) if list.len() > 4 => format!("a list of {}", list.len()),
        value => format!("{value:?}").chars().take(80).collect(),
    }
}

const INTS: [i64; 9] = [0, -1, 1, 3, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 62, i64::MIN];
const FLOATS: [f32; 6] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -1.0, 1e38];
const TEXTS: [&str; 4] = ["", "nonsense", "\u{e4}", "[[[{"];

/// Shapes that are unknown, negative or huge.
fn shapes() -> Vec<PartialShape> {
    let dims: [&[i64]; 9] =
        [&[], &[0], &[-1], &[-1, -1], &[3], &[1 << 31], &[1 << 32, 1 << 32], &[1 << 62, 4], &[1, 1, 1, 1, 1]];
    let mut all: Vec<PartialShape> = dims.iter().map(|dims| PartialShape::new(dims)).collect();
    all.push(PartialShape::unknown());
    all
}

fn singles(sample: &Sample, attr: &AttrDef) -> Vec<AttrValue> {
    match attr.kind {
        AttrKind::Int => INTS.map(AttrValue::Int).to_vec(),
        AttrKind::Float => FLOATS.map(AttrValue::Float).to_vec(),
        AttrKind::Bool => vec![true.into(), false.into()],
        AttrKind::String => strings(attr),
        AttrKind::Shape => shapes().into_iter().map(AttrValue::Shape).collect(),
        AttrKind::Tensor => tensors(sample, attr),
        AttrKind::Func => functions::ALL.map(|name| functions::call(name).into()).to_vec(),
        AttrKind::Type => Vec::new(),
    }
}

fn strings(attr: &AttrDef) -> Vec<AttrValue> {
    let mut all: Vec<AttrValue> = TEXTS.map(AttrValue::from).to_vec();
    if let Some(AttrValue::List(list)) = &attr.allowed {
        all.extend(list.strings.iter().cloned().map(AttrValue::String));
    }
    all
}

fn tensors(sample: &Sample, attr: &AttrDef) -> Vec<AttrValue> {
    let dtype = match sample.node().attrs.get(&attr.name) {
        Some(AttrValue::Tensor(value)) => value.dtype(),
        _ => DType::F32,
    };
    let shapes: [&[usize]; 4] = [&[], &[0], &[2, 0, 3], &[1, 1, 1, 1, 1]];
    let of = |dtype: DType| shapes.iter().filter_map(move |shape| numbers(dtype, Shape::new(shape), &[1.0]).ok());
    let mut all: Vec<AttrValue> = of(dtype).map(AttrValue::from).collect();
    all.push(Tensor::string("text").into());
    all
}

/// Lists that are empty, too long, or have one bad element.
fn lists(attr: &AttrDef, value: Option<&AttrValue>) -> Vec<AttrValue> {
    let old = match value {
        Some(AttrValue::List(list)) => (**list).clone(),
        _ => AttrList::default(),
    };
    let mut all = vec![AttrList::default()];
    match attr.kind {
        AttrKind::Int => {
            let with = |ints| AttrList { ints, ..AttrList::default() };
            all.extend(ruined(&old.ints, &INTS).into_iter().map(with));
        }
        AttrKind::Float => {
            let with = |floats| AttrList { floats, ..AttrList::default() };
            all.extend(ruined(&old.floats, &FLOATS).into_iter().map(with));
        }
        AttrKind::String => {
            let with = |strings| AttrList { strings, ..AttrList::default() };
            let texts = TEXTS.map(|text| text.as_bytes().to_vec().into());
            all.extend(ruined(&old.strings, &texts).into_iter().map(with));
        }
        AttrKind::Shape => {
            let with = |shapes| AttrList { shapes, ..AttrList::default() };
            all.extend(ruined(&old.shapes, &shapes()).into_iter().map(with));
        }
        AttrKind::Type => {
            let with = |types| AttrList { types, ..AttrList::default() };
            let types = [DType::F32, DType::STRING, DType::VARIANT, DType::RESOURCE, DType::I64];
            all.extend(ruined(&old.types, &types).into_iter().map(with));
        }
        AttrKind::Func => {
            let with = |funcs| AttrList { funcs, ..AttrList::default() };
            let names = functions::ALL.map(|name| Arc::new(functions::call(name)));
            all.extend(ruined(&old.funcs, &names).into_iter().map(with));
        }
        AttrKind::Bool => all.push(AttrList { bools: vec![true; 20], ..AttrList::default() }),
        AttrKind::Tensor => {}
    }
    all.into_iter().map(AttrValue::from).collect()
}

/// A list with one bad element, of only bad elements, one shorter, one longer, much longer.
fn ruined<T: Clone>(old: &[T], bad: &[T]) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    for value in bad {
        all.push(vec![value.clone(); old.len().max(1)]);
        for place in 0..old.len().min(4) {
            let mut list = old.to_vec();
            list[place] = value.clone();
            all.push(list);
        }
    }
    if let Some((last, rest)) = old.split_last() {
        all.push(rest.to_vec());
        all.push([old, std::slice::from_ref(last)].concat());
    }
    all.push(vec![bad[0].clone(); 20]);
    all
}

/// The node with other types, and with inputs of these types.
fn other_types(sample: &Sample, signature: &Signature, attr: &AttrDef) -> Vec<Mutant> {
    let all = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U64,
        DType::BOOL,
        DType::C64,
        DType::STRING,
    ];
    let allowed: Vec<DType> = match &attr.allowed {
        Some(AttrValue::List(list)) => list.types.clone(),
        _ => all.to_vec(),
    };
    let old = sample.node().attrs.get(&attr.name).or(attr.default.as_ref());
    let places = places(sample, signature, &attr.name);
    let mut found = Vec::new();
    for dtype in allowed {
        if old == Some(&AttrValue::Type(dtype)) {
            continue;
        }
        let mut changed = sample.with_attr(&attr.name, dtype.into());
        for &input in &places {
            if let Some(value) = sample.input_value(input).and_then(|value| converted(&value, dtype)) {
                changed = changed.with_input(input, &value, true);
            }
        }
        found.push(mutant(format!("{} is {dtype}", attr.name), changed));
    }
    found
}

/// The inputs whose type is in an attribute.
fn places(sample: &Sample, signature: &Signature, attr: &str) -> Vec<usize> {
    let (mut places, mut next) = (Vec::new(), 0);
    for arg in &signature.inputs {
        let count = signature.arg_types(arg, sample.node()).map_or(0, |types| types.len());
        if arg.ty == ArgType::Attr(attr.to_string()) && !arg.is_ref {
            places.extend(next..next + count);
        }
        next += count;
    }
    places.retain(|&place| place < sample.data_inputs());
    places
}

fn converted(value: &Tensor, dtype: DType) -> Option<Tensor> {
    if dtype == DType::STRING {
        return Tensor::zeros_of(dtype, value.shape().clone()).ok();
    }
    let values: Vec<f64> = wide(value).ok()?.iter().map(|value| value.re).collect();
    let values = if values.is_empty() { vec![1.0] } else { values };
    numbers(dtype, value.shape().clone(), &values).ok()
}
