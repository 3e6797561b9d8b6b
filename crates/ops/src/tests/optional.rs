//! Values that may be absent: how they travel, and how gradients pass them.

use super::evaluate::{Evaluation, constant, graph};
use crate::array::nodes::pair;
use crate::data_structures::optional::*;
use tensor::{DType, PartialShape, Tensor, Variant, VariantObject};

#[test]
fn an_optional_travels() {
    for optional in
        [Optional::new(None), Optional::new(Some(vec![Tensor::scalar(5_i32), Tensor::scalar(1.5_f32)].into()))]
    {
        let data = Variant::Data(optional.encode().unwrap().into());
        let found = Optional::from_variant(&data).unwrap();
        assert_eq!(found.components().is_some(), optional.components().is_some());
        assert_eq!(
            found.components().map_or(0, |parts| parts.len()),
            optional.components().map_or(0, |parts| parts.len())
        );
    }
    assert!(Optional::from_variant(&Variant::default()).is_none());
}

#[test]
fn gradients_pass_through() {
    let (g, step) = (graph(), Evaluation::new());
    let x = constant(&g, Tensor::vector(&[1.0_f32, 2.0]));
    let optional = optional_from_value(&g.root(), std::slice::from_ref(&x));
    let value = &optional_get_value(&optional, &[(DType::F32, PartialShape::unknown())])[0];
    let rule = |op: &str| crate::registry().op(op).unwrap().grad;
    let op::Grad::Rules(get) = rule("OptionalGetValue") else { panic!("a rule of many outputs") };
    let op::Grad::Rule(put) = rule("OptionalFromValue") else { panic!("a rule of one output") };
    let dense = |gradients: op::Grads| match gradients.into_iter().next() {
        Some(Some(op::Gradient::Dense(gradient))) => gradient,
        _ => panic!("a gradient"),
    };
    let dy = pair("Mul", value, &x);
    let into = dense(get(value.node(), &[Some(dy)]).unwrap());
    let dx = dense(put(optional.node(), &into).unwrap());
    assert_eq!(step.value(&dx).unwrap().values::<f32>().unwrap(), [1.0, 4.0]);
}
