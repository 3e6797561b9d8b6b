//! The element types for which an op has a kernel: found by building kernels.

use crate::kernel::{DEVICE, NoFunctions};
use graph::{AttrDef, AttrKind, AttrValue, NodeDef, Signature};
use op::{Op, Resources, Setup};
use std::sync::Arc;
use tensor::DType;

/// The types that an attribute may have if its definition does not list them.
const TYPES: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::BOOL,
    DType::C64,
    DType::C128,
    DType::STRING,
];

/// The types of the attribute `T`, or of the first type attribute that an input has, for which there is a kernel; empty
/// for an op of fixed types.
pub fn kernel_types(row: &Op, signature: &Signature) -> String {
    let Some(attr) = type_attr(signature) else { return String::new() };
    let allowed = allowed(attr);
    let all = allowed.len();
    let found: Vec<DType> =
        allowed.into_iter().filter(|&dtype| has_kernel(row, signature, &attr.name, dtype)).collect();
    if attr.allowed.is_none() && found.len() == all {
        return format!("{}: any", attr.name);
    }
    format!("{}: {}", attr.name, found.iter().map(DType::to_string).collect::<Vec<_>>().join(" "))
}

fn type_attr(signature: &Signature) -> Option<&AttrDef> {
    let types = || signature.attrs.iter().filter(|attr| attr.kind == AttrKind::Type && !attr.list);
    types().find(|attr| attr.name == "T").or_else(|| types().next())
}

fn allowed(attr: &AttrDef) -> Vec<DType> {
    match &attr.allowed {
        Some(AttrValue::List(list)) => list.types.clone(),
        _ => TYPES.to_vec(),
    }
}

/// True if a kernel can be built, or cannot be built for another reason than its type: the node has only the attributes
/// that are needed to choose a type.
fn has_kernel(row: &Op, signature: &Signature, attr: &str, dtype: DType) -> bool {
    let mut def = NodeDef { name: "n".to_string(), op: signature.name.clone(), ..NodeDef::default() };
    for other in signature.attrs.iter().filter(|other| other.kind == AttrKind::Type && !other.list) {
        let ty = if other.name == attr { dtype } else { allowed(other)[0] };
        def.attrs.insert(other.name.clone(), AttrValue::Type(ty));
    }
    let (inputs, outputs) =
        (signature.input_types(&def).unwrap_or_default(), signature.output_types(&def).unwrap_or_default());
    let resources = Arc::new(Resources::new("localhost"));
    let setup = Setup::new(&def, signature, (&inputs, &outputs), DEVICE, &resources, &NoFunctions);
    match (row.kernel)(&setup) {
        Err(error) => !error.message.starts_with("No OpKernel"),
        Ok(_) => true,
    }
}
