//! Tables and variables that a dataset captured: its graph makes copies of them.

use super::write::Writer;
use graph::AttrValue;
use graph::builtin_ops::IDENTITY;
use op::{Home, Resource as _, Variable};
use ops::data_structures::lookup::{CopiedTable, copied_table};
use status::Result;
use std::hash::{BuildHasher, RandomState};
use tensor::{DType, Tensor};

/// The shared name of variables that only their handle finds.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// A resource with values.
pub(super) enum Resource {
    Table(CopiedTable),
    Variable(Tensor),
}

impl Resource {
    /// The resource that a tensor refers to; none if TensorFlow copies only the handle.
    pub fn of(home: &Home, tensor: &Tensor) -> Result<Option<Resource>> {
        let Ok([handle]) = tensor.handles() else { return Ok(None) };
        if handle.type_name == Variable::TYPE_NAME {
            return home.find::<Variable>(handle)?.read().map(|value| Some(Resource::Variable(value)));
        }
        Ok(copied_table(home, handle)?.map(Resource::Table))
    }

    /// Writes nodes that make the resource anew, and returns the node with its handle.
    pub fn put(self, writer: &mut Writer) -> Result<String> {
        match self {
            Resource::Table(table) => put_table(writer, table),
            Resource::Variable(value) => put_variable(writer, &value),
        }
    }
}

/// The table is named after its node, and so outlives the kernel that makes it. Tables with one name are the same
/// table, so names are random.
fn put_table(writer: &mut Writer, table: CopiedTable) -> Result<String> {
    let (keys, values) = table.entries;
    let base = table.op.strip_suffix("V2").unwrap_or(table.op);
    let name = format!("{base}FromGraphDef/0/{}", RandomState::new().hash_one(0u64));
    let (key_dtype, value_dtype) = (AttrValue::from(keys.dtype()), AttrValue::from(values.dtype()));
    let named = ("use_node_name_sharing", AttrValue::Bool(true));
    let (key_attr, value_attr) = (("key_dtype", key_dtype.clone()), ("value_dtype", value_dtype.clone()));
    let name = match table.value_shape {
        None => writer.put(name, table.op, Vec::new(), [named, key_attr, value_attr])?,
        Some(shape) => {
            let shape = ("value_shape", AttrValue::Shape((&shape).into()));
            writer.put(name, table.op, Vec::new(), [named, key_attr, value_attr, shape])?
        }
    };
    let inputs = vec![name.clone(), writer.put_constant(&keys)?, writer.put_constant(&values)?];
    let filled = writer.put_op("LookupTableImportV2", inputs, [("Tin", key_dtype), ("Tout", value_dtype)])?;
    put_after(writer, name, &filled)
}

fn put_variable(writer: &mut Writer, value: &Tensor) -> Result<String> {
    let dtype = AttrValue::from(value.dtype());
    let shape = AttrValue::Shape(value.shape().into());
    let attrs = [("dtype", dtype.clone()), ("shape", shape), ("shared_name", ANONYMOUS.into())];
    let variable = writer.put_op("VarHandleOp", Vec::new(), attrs)?;
    let inputs = vec![variable.clone(), writer.put_constant(value)?];
    let assigned = writer.put_op("AssignVariableOp", inputs, [("dtype", dtype)])?;
    put_after(writer, variable, &assigned)
}

/// The handle, once the node that fills the resource has run.
fn put_after(writer: &mut Writer, handle: String, filled: &str) -> Result<String> {
    writer.put_op(IDENTITY, vec![handle, format!("^{filled}")], [("T", DType::RESOURCE.into())])
}
