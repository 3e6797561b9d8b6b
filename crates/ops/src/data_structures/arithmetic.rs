//! Operations of containers on the tensors they hold: add, zeros like, concatenate, split.

use crate::sparse::{csr, ragged_variant};
use math::elementwise::{cost, zip_in_place_left};
use math::function::Number;
use op::Ctx;
use status::{Result, internal, invalid};
use tensor::{Complex32, Complex64, DType, Element, Shape, Tensor, Variant, VariantObject, bf16, f16};

/// The sum of two tensors of one type and shape, variants included; in place where `lhs` has no other owner.
pub fn add(ctx: &Ctx<'_>, mut lhs: Tensor, rhs: &Tensor) -> Result<Tensor> {
    if lhs.dtype() != rhs.dtype() || lhs.shape() != rhs.shape() {
        return Err(invalid!(
            "Cannot add a tensor of type {} and shape {} to one of type {} and shape {}",
            rhs.dtype(),
            rhs.shape(),
            lhs.dtype(),
            lhs.shape()
        ));
    }
    match lhs.dtype() {
        DType::F32 => add_numbers::<f32>(ctx, &mut lhs, rhs)?,
        DType::F64 => add_numbers::<f64>(ctx, &mut lhs, rhs)?,
        DType::F16 => add_numbers::<f16>(ctx, &mut lhs, rhs)?,
        DType::BF16 => add_numbers::<bf16>(ctx, &mut lhs, rhs)?,
        DType::I8 => add_numbers::<i8>(ctx, &mut lhs, rhs)?,
        DType::I16 => add_numbers::<i16>(ctx, &mut lhs, rhs)?,
        DType::I32 => add_numbers::<i32>(ctx, &mut lhs, rhs)?,
        DType::I64 => add_numbers::<i64>(ctx, &mut lhs, rhs)?,
        DType::U8 => add_numbers::<u8>(ctx, &mut lhs, rhs)?,
        DType::U16 => add_numbers::<u16>(ctx, &mut lhs, rhs)?,
        DType::U32 => add_numbers::<u32>(ctx, &mut lhs, rhs)?,
        DType::U64 => add_numbers::<u64>(ctx, &mut lhs, rhs)?,
        DType::C64 => add_numbers::<Complex32>(ctx, &mut lhs, rhs)?,
        DType::C128 => add_numbers::<Complex64>(ctx, &mut lhs, rhs)?,
        DType::VARIANT => return add_variants(ctx, &lhs, rhs),
        other => return Err(invalid!("Trying to add unsupported dtype {}", other.number())),
    }
    Ok(lhs)
}

fn add_numbers<T: Element + Number>(ctx: &Ctx<'_>, lhs: &mut Tensor, rhs: &Tensor) -> Result<()> {
    zip_in_place_left(ctx.pool(), cost::SIMPLE, lhs.values_mut::<T>()?, rhs.values::<T>()?, T::add);
    Ok(())
}

fn add_variants(ctx: &Ctx<'_>, lhs: &Tensor, rhs: &Tensor) -> Result<Tensor> {
    let sums: Result<Vec<Variant>> =
        lhs.variants()?.iter().zip(rhs.variants()?).map(|(a, b)| add_variant(ctx, a, b)).collect();
    Tensor::from_variants(lhs.shape(), sums?)
}

/// The sum of two variants of one type.
pub fn add_variant(ctx: &Ctx<'_>, lhs: &Variant, rhs: &Variant) -> Result<Variant> {
    let add = |a: &Tensor, b: &Tensor| add(ctx, a.clone(), b);
    match decoded(lhs)? {
        Variant::Object(object) => object.add(rhs, &add),
        Variant::Data(data) => Err(no_function("binary_op", "ADD", &format!("'{}'", data.type_name))),
    }
}

/// A tensor of the same type and shape with zeros for its numbers, empty strings, or variants like those given.
pub fn zeros_like(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dtype() != DType::VARIANT {
        return Tensor::zeros_of(tensor.dtype(), tensor.shape());
    }
    let zeros: Result<Vec<Variant>> = tensor.variants()?.iter().map(zeros_like_variant).collect();
    Tensor::from_variants(tensor.shape(), zeros?)
}

fn zeros_like_variant(variant: &Variant) -> Result<Variant> {
    match decoded(variant)? {
        Variant::Object(object) => object.zeros_like(),
        Variant::Data(data) if data.type_name.is_empty() => Ok(variant.clone()),
        Variant::Data(data) => Err(no_function("unary_op", "ZEROS_LIKE", &data.type_name)),
    }
}

/// A variant as TensorFlow writes it down: its type and its value.
pub(crate) fn described(variant: &Variant) -> Result<String> {
    let variant = decoded(variant)?;
    let name = variant.encode().map(|data| data.type_name).unwrap_or_default();
    Ok(match &variant {
        Variant::Object(object) => format!("Variant<type: {name} value: {object:?}>"),
        Variant::Data(_) if name.is_empty() => "Variant<type:  value: [empty]>".to_string(),
        Variant::Data(_) => format!("{variant:?}"),
    })
}

/// Decodes a variant that was received in serialized form, if its type is known here.
fn decoded(variant: &Variant) -> Result<Variant> {
    let Variant::Data(data) = variant else { return Ok(variant.clone()) };
    Ok(match data.type_name.as_str() {
        super::tensor_list::TYPE_NAME => object(super::tensor_list::TensorList::decode(data)?),
        super::optional::TYPE_NAME => {
            let decoded = super::optional::Optional::decode(data);
            object(decoded.ok_or_else(|| invalid!("The metadata of an Optional cannot be read"))?)
        }
        csr::TYPE_NAME => object(csr::Csr::decode(data)?),
        super::composite::TYPE_NAME => object(super::composite::Composite::decode(data)?),
        super::tensor_map::TYPE_NAME => object(super::tensor_map::TensorMap::decode(data)?),
        ragged_variant::TYPE_NAME => ragged_variant::Ragged::decode(data).map_or_else(|| variant.clone(), object),
        _ => super::plain_variant::Plain::decode(data).map_or_else(|| variant.clone(), object),
    })
}

fn object(object: impl VariantObject) -> Variant {
    Variant::Object(std::sync::Arc::new(object))
}

fn no_function(kind: &str, op: &str, type_name: &str) -> status::Error {
    internal!("No unary variant {kind} function found for op {op} Variant type_name: {type_name} for device type: CPU")
}

/// All elements of `parts`, one after the other, under a shape that has room for exactly them.
pub(crate) fn joined(dtype: DType, shape: Shape, parts: &[Tensor]) -> Result<Tensor> {
    match dtype {
        DType::STRING => {
            let mut all = Vec::new();
            parts.iter().try_for_each(|part| part.strings().map(|values| all.extend_from_slice(values)))?;
            Tensor::from_strings(shape, all)
        }
        DType::VARIANT => {
            let mut all = Vec::new();
            parts.iter().try_for_each(|part| part.variants().map(|values| all.extend_from_slice(values)))?;
            Tensor::from_variants(shape, all)
        }
        DType::RESOURCE => {
            let mut all = Vec::new();
            parts.iter().try_for_each(|part| part.handles().map(|values| all.extend_from_slice(values)))?;
            Tensor::from_handles(shape, all)
        }
        _ => joined_plain(dtype, shape, parts),
    }
}

fn joined_plain(dtype: DType, shape: Shape, parts: &[Tensor]) -> Result<Tensor> {
    let count: usize = parts.iter().map(Tensor::elements).sum();
    if let Some(part) = parts.iter().find(|part| part.dtype() != dtype) {
        return Err(internal!("a tensor of type {} among those of type {dtype}", part.dtype()));
    }
    if shape.checked_elements()? != count {
        return Err(internal!("{count} elements do not match shape {shape}"));
    }
    let mut out = Tensor::scratch_of(dtype, shape)?;
    let mut rest = out.bytes_mut()?;
    for part in parts {
        let bytes = part.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
        let (place, after) = rest.split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        rest = after;
    }
    Ok(out)
}

/// Row `index` of a tensor, without its first dimension.
pub(crate) fn row(tensor: &Tensor, index: usize) -> Result<Tensor> {
    let shape = Shape::new(tensor.shape().get(1..).unwrap_or_default());
    let width = shape.elements();
    tensor.slice_elements(index * width, shape)
}

/// A variant that is this object, as a scalar.
pub(crate) fn scalar_variant(object: impl VariantObject) -> Result<Tensor> {
    Tensor::from_variants(Shape::scalar(), vec![self::object(object)])
}
