//! CompressElement and UncompressElement: an element in a compressed form.

use crate::compress::{compress, is_compressed, uncompress};
use crate::iterators::element_shapes;
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup, Value, many, outputs};
use status::{Result, failed_precondition, invalid};
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CompressElement(components: [input_types]) -> compressed: variant; input_types: list(type) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: compress_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UncompressElement(compressed: variant) -> components: [output_types]; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: element_shapes,
        grad: Grad::Stop,
        kernel: uncompress_kernel,
        facts: PLAIN,
    },
];

fn compress_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let compressed = compress(&inputs.tensors_from(0)?)?;
        Ok(outputs![Tensor::from_variants(Shape::scalar(), vec![compressed])?])
    }))
}

fn uncompress_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let types = setup.types("output_types")?;
    Ok(many(move |_, mut inputs| {
        let compressed = inputs.tensor(0)?;
        let components = components(&compressed, &types)?;
        Ok(components.into_iter().map(Value::Tensor).collect())
    }))
}

fn components(compressed: &Tensor, types: &[DType]) -> Result<Vec<Tensor>> {
    let rank = compressed.shape().rank();
    if rank != 0 {
        return Err(invalid!(
            "UncompressElement requires its input to be a scalar, but encountered an input with {rank} dimensions."
        ));
    }
    let variant = compressed.variants()?.iter().find(|variant| is_compressed(variant));
    let element = variant
        .and_then(uncompress)
        .ok_or_else(|| invalid!("Input does not contain a compressed element. Instead got tensor {compressed:?}"))??;
    if element.len() != types.len() {
        return Err(failed_precondition!(
            "Expected {} outputs from uncompress, but got {}",
            types.len(),
            element.len()
        ));
    }
    for (component, &dtype) in element.iter().zip(types) {
        let found = component.dtype();
        if found != dtype {
            return Err(failed_precondition!("Expected a tensor of type {dtype} but got a tensor of type {found}"));
        }
    }
    Ok(element.into_vec())
}
