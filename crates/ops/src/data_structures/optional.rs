//! Optional: several tensors as one value, or no value. A conditional uses optionals to pass tensors from both
//! branches, of which only one has run, to its gradient.

use super::arithmetic::{scalar_variant, zeros_like};
use graph::{AttrList, AttrValue, Node, Output, Scope, ShapeQuery};
use op::shapes::scalar;
use op::{Grad, Gradient, Grads, Kernel, Op, Outputs, PLAIN, Setup, Value, many, outputs};
use status::{Result, invalid};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tensor::{AddTensors, DType, PartialShape, Tensor, Variant, VariantData, VariantObject, nesting_of};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "OptionalFromValue(components: [Toutput_types]) -> optional: variant; Toutput_types: list(type) >= 1",
        shape: scalar,
        grad: Grad::Rule(from_value_rule),
        kernel: from_value_kernel,
        facts: PLAIN,
    },
    Op {
        def: "OptionalNone() -> optional: variant",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(op::source(|_| scalar_variant(Optional::new(None)))),
        facts: PLAIN,
    },
    Op {
        def: "OptionalHasValue(optional: variant) -> has_value: bool",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| {
            Ok(op::unary(|_, handle| {
                Ok(Tensor::scalar(Optional::of(&handle, "OptionalHasValue")?.components.is_some()))
            }))
        },
        facts: PLAIN,
    },
    Op {
        def: "OptionalGetValue(optional: variant) -> components: [output_types]; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: value_shapes,
        grad: Grad::Rules(get_value_rule),
        kernel: get_value_kernel,
        facts: PLAIN,
    },
];

/// The type name of an optional in serialized variants.
pub(crate) const TYPE_NAME: &str = "tensorflow::data::Optional";

/// An optional that holds these tensors.
pub fn optional_from_value(scope: &Scope, components: &[Output]) -> Output {
    scope.op("OptionalFromValue").inputs(components).output()
}

/// An optional that holds nothing.
pub fn optional_none(scope: &Scope) -> Output {
    scope.op("OptionalNone").output()
}

/// Whether an optional holds something.
pub fn optional_has_value(optional: &Output) -> Output {
    optional.scope().op("OptionalHasValue").input(optional).output()
}

/// The contents of an optional: tensors of these types, with shapes as far as they are known.
pub fn optional_get_value(optional: &Output, components: &[(DType, PartialShape)]) -> Vec<Output> {
    let (types, shapes) = components.iter().cloned().unzip();
    let shapes = AttrValue::from(AttrList { shapes, ..AttrList::default() });
    let types = AttrValue::from(AttrList { types, ..AttrList::default() });
    let builder = optional.scope().op("OptionalGetValue").input(optional);
    builder.attr("output_types", types).attr("output_shapes", shapes).node().outputs()
}

fn value_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.attr("output_shapes")? {
        AttrValue::List(list) if list.shapes.len() == query.outputs => Ok(list.shapes.clone()),
        _ => Err(invalid!("`output_shapes` must be the same length as `output_types`")),
    }
}

fn from_value_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let described: Vec<_> = op.all_inputs().iter().map(|input| (input.dtype(), input.shape())).collect();
    Ok(optional_get_value(dy, &described).into_iter().map(|gradient| Some(Gradient::Dense(gradient))).collect())
}

fn get_value_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let gradient = |(index, gradient): (usize, &Option<Output>)| {
        gradient.clone().unwrap_or_else(|| op.scope().op("ZerosLike").input(&op.output(index)).output())
    };
    let components: Vec<Output> = dy.iter().enumerate().map(gradient).collect();
    Ok(vec![Some(Gradient::Dense(optional_from_value(op.scope(), &components)))])
}

fn from_value_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let components = inputs.tensors_from(0)?;
        Ok(outputs![scalar_variant(Optional::new(Some(components.into())))?])
    }))
}

fn get_value_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (types, shapes) = (setup.types("output_types")?, setup.list("output_shapes")?.shapes.clone());
    if types.len() != shapes.len() {
        return Err(invalid!(
            "output_types and output_shapes must be same length, got:\noutput_types: {}\noutput_shapes: {}",
            types.len(),
            shapes.len()
        ));
    }
    Ok(many(move |_, mut inputs| components(&inputs.tensor(0)?, &types, &shapes)))
}

fn components(handle: &Tensor, types: &[DType], shapes: &[PartialShape]) -> Result<Outputs> {
    let Some(components) = Optional::of(handle, "OptionalGetValue")?.components else {
        return Err(invalid!("The given optional does not have a value."));
    };
    if components.len() != types.len() {
        return Err(invalid!("The given optional has {} components, expected {}", components.len(), types.len()));
    }
    for (i, (component, (dtype, shape))) in components.iter().zip(types.iter().zip(shapes)).enumerate() {
        let wrong = |what: &str, expected: &dyn fmt::Display, actual: &dyn fmt::Display| {
            invalid!(
                "The given optional does not match the expected {what} for component {i}. Expected: {expected}. \
                 Actual: {actual}."
            )
        };
        if component.dtype() != *dtype {
            return Err(wrong("type", dtype, &component.dtype()));
        }
        if !shape.accepts(component.shape()) {
            return Err(wrong("shape", shape, component.shape()));
        }
    }
    Ok(components.iter().cloned().map(Value::Tensor).collect())
}

/// An optional as a scalar tensor.
pub fn optional_tensor(components: Option<Vec<Tensor>>) -> Result<Tensor> {
    scalar_variant(Optional::new(components.map(Arc::from)))
}

/// Tensors, or nothing.
#[derive(Clone)]
pub struct Optional {
    components: Option<Arc<[Tensor]>>,
    nesting: usize,
}

impl Optional {
    /// An optional of these tensors, or of nothing.
    pub fn new(components: Option<Arc<[Tensor]>>) -> Optional {
        let nesting = nesting_of(components.as_deref().unwrap_or_default());
        Optional { components, nesting }
    }

    /// The tensors, if there are any.
    pub fn components(&self) -> Option<&[Tensor]> {
        self.components.as_deref()
    }

    /// The optional in a scalar variant that an op got.
    fn of(handle: &Tensor, op: &str) -> Result<Optional> {
        let ([variant], 0) = (handle.variants()?, handle.shape().rank()) else {
            return Err(invalid!("Input to {op} must be a scalar tensor containing an OptionalVariant object."));
        };
        Optional::from_variant(variant).ok_or_else(|| invalid!("Input to {op} must be an OptionalVariant object."))
    }

    /// The optional a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Optional> {
        match variant {
            Variant::Data(data) => Optional::decode(data),
            Variant::Object(_) => variant.object::<Optional>().cloned(),
        }
    }

    /// Decodes an optional from its serialized form: its first byte says whether it has a value.
    pub fn decode(data: &VariantData) -> Option<Optional> {
        match (data.type_name.as_str(), &data.metadata[..]) {
            (TYPE_NAME, [0]) => Some(Optional::new(None)),
            (TYPE_NAME, [_]) => Some(Optional::new(Some(data.tensors.clone().into()))),
            _ => None,
        }
    }
}

impl VariantObject for Optional {
    fn encode(&self) -> Result<VariantData> {
        Ok(VariantData {
            type_name: TYPE_NAME.to_string(),
            metadata: vec![u8::from(self.components.is_some())].into(),
            tensors: self.components().unwrap_or_default().to_vec(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn nesting(&self) -> usize {
        self.nesting
    }

    fn zeros_like(&self) -> Result<Variant> {
        let zeros = |components: &Arc<[Tensor]>| components.iter().map(zeros_like).collect::<Result<_>>();
        Ok(Variant::Object(Arc::new(Optional::new(self.components.as_ref().map(zeros).transpose()?))))
    }

    fn add(&self, other: &Variant, add: &AddTensors<'_>) -> Result<Variant> {
        let other = Optional::from_variant(other);
        let sum = match (&self.components, other.and_then(|other| other.components)) {
            (None, None) => None,
            (Some(a), Some(b)) if a.len() != b.len() => {
                return Err(invalid!(
                    "Cannot add optionals because they have different numbers of components ({} vs. {}).",
                    a.len(),
                    b.len()
                ));
            }
            (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(a, b)| add(a, b)).collect::<Result<_>>()?),
            _ => {
                return Err(invalid!("Cannot add optionals because one has a value and the other doesn't."));
            }
        };
        Ok(Variant::Object(Arc::new(Optional::new(sum))))
    }
}

impl fmt::Debug for Optional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.components {
            Some(components) => write!(f, "OptionalVariant<values: ({} tensors)>", components.len()),
            None => f.write_str("OptionalVariant<None>"),
        }
    }
}
