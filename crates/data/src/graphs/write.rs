//! Writes datasets as graphs, as TensorFlow does.

use super::functions::add_functions;
use super::resources::Resource;
use crate::dataset::Handle;
use graph::builtin_ops::{CONST, RETVAL};
use graph::wire::attr_to_bytes;
use graph::{AttrList, AttrValue, DeviceSpec, FunctionDef, FunctionLibrary, GraphDef, NodeDef, TensorAttr};
use rustc_hash::FxHashMap;
use status::{Result, exhausted, internal, invalid, unimplemented_op};
use std::sync::Arc;
use tensor::wire::{EncodedTensor, MAX_MESSAGE, encode_spelled};
use tensor::{DType, PartialShape, Tensor};

/// The graph of the dataset in a tensor. Its last node, a `_Retval`, returns the dataset.
pub(crate) fn graph_of(tensor: &Tensor) -> Result<GraphDef> {
    graph_from(Handle::of(tensor)?)
}

/// As `graph_of`.
pub(crate) fn graph_from(root: &Handle) -> Result<GraphDef> {
    let mut writer = Writer::default();
    // Not by recursion: pipelines are as long as clients make them.
    let mut waiting = vec![(root, false)];
    while let Some((handle, are_inputs_written)) = waiting.pop() {
        if writer.names.contains_key(&std::ptr::from_ref(handle)) {
            continue;
        }
        if are_inputs_written {
            writer.put_dataset(handle)?;
            continue;
        }
        waiting.push((handle, true));
        let inputs: Vec<&Handle> = handle.written_inputs().flat_map(Handle::all_in).collect();
        waiting.extend(inputs.into_iter().rev().map(|input| (input, false)));
    }
    let output = writer.name_of(root)?;
    let attrs = [("T", DType::VARIANT.into()), ("index", 0i64.into())];
    writer.put("dataset".to_string(), RETVAL, vec![output], attrs)?;
    Ok(writer.graph)
}

/// A graph that is being written.
#[derive(Default)]
pub(super) struct Writer {
    graph: GraphDef,
    /// The nodes of the datasets that are written.
    names: FxHashMap<*const Handle, String>,
    bytes: usize,
}

impl Writer {
    fn put_dataset(&mut self, handle: &Handle) -> Result<()> {
        let name = match (&handle.origin, handle.dataset.held()) {
            (Some(origin), _) => {
                let maker = &*origin.maker;
                self.graph.versions.producer = self.graph.versions.producer.max(maker.producer);
                self.add_functions_of(&maker.node, maker.functions.as_deref())?;
                let source = |input| self.put_tensor(input, maker.home.as_ref());
                let inputs = origin.inputs.iter().map(source).collect::<Result<_>>()?;
                self.put_node(&maker.node.op, inputs, described(&maker.node, handle))?
            }
            (None, Some(elements)) => {
                let spec = handle.dataset.spec();
                let inputs = elements.iter().flatten().map(|tensor| self.put_tensor(tensor, None));
                let inputs = inputs.collect::<Result<Vec<_>>>()?;
                let types = elements.iter().flatten().map(Tensor::dtype).collect();
                let attrs = [
                    ("Tinputs", types_attr(types)),
                    ("output_types", types_attr(spec.types.clone())),
                    ("output_shapes", shapes_attr(spec.shapes.clone())),
                ];
                self.put_op("WindowOp", inputs, attrs)?
            }
            (None, None) => {
                return Err(unimplemented_op!(
                    "{}DatasetOp::Dataset does not support serialization",
                    handle.dataset.kind()
                ));
            }
        };
        self.names.insert(handle, name);
        Ok(())
    }

    fn add_functions_of(&mut self, node: &NodeDef, all: Option<&FunctionLibrary>) -> Result<()> {
        add_functions(&mut self.graph.library, node, all.unwrap_or(&FunctionLibrary::default()))
    }

    fn name_of(&self, handle: &Handle) -> Result<String> {
        let name = self.names.get(&std::ptr::from_ref(handle)).cloned();
        name.ok_or_else(|| internal!("an input of a dataset was not written"))
    }

    /// The node of a tensor: of the datasets in it, of the resource that it refers to, or a constant.
    fn put_tensor(&mut self, tensor: &Tensor, home: Option<&op::Home>) -> Result<String> {
        if let Ok(variants) = tensor.variants() {
            let handles: Option<Vec<&Handle>> = variants.iter().map(|variant| variant.object()).collect();
            if let Some(handles) = handles.filter(|handles| !handles.is_empty()) {
                return self.put_packed(&handles, tensor.shape());
            }
        }
        match home.map(|home| Resource::of(home, tensor)).transpose()?.flatten() {
            Some(resource) => resource.put(self),
            None => self.put_constant(tensor),
        }
    }

    /// Datasets as one tensor of this shape.
    fn put_packed(&mut self, handles: &[&Handle], shape: &[usize]) -> Result<String> {
        let mut names = handles.iter().map(|handle| self.name_of(handle)).collect::<Result<Vec<_>>>()?;
        for &count in shape.iter().rev() {
            let packed = names.chunks(count.max(1)).map(|row| {
                let attrs = [("N", count.into()), ("T", DType::VARIANT.into()), ("axis", 0i64.into())];
                self.put_op("Pack", row.to_vec(), attrs)
            });
            names = packed.collect::<Result<_>>()?;
        }
        names.pop().ok_or_else(|| internal!("a tensor of datasets is empty"))
    }

    pub(super) fn put_constant(&mut self, tensor: &Tensor) -> Result<String> {
        let value = TensorAttr::from(EncodedTensor::from(encode_spelled(tensor)?));
        self.put_op(CONST, Vec::new(), [("dtype", tensor.dtype().into()), ("value", AttrValue::Tensor(value))])
    }

    pub(super) fn put_op<const N: usize>(
        &mut self,
        op: &str,
        inputs: Vec<String>,
        attrs: [(&str, AttrValue); N],
    ) -> Result<String> {
        let name = format!("{op}/_{}", self.graph.nodes.len());
        self.put(name, op, inputs, attrs)
    }

    pub(super) fn put<const N: usize>(
        &mut self,
        name: String,
        op: &str,
        inputs: Vec<String>,
        attrs: [(&str, AttrValue); N],
    ) -> Result<String> {
        let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        self.add(NodeDef { name, op: op.to_string(), inputs, attrs, ..NodeDef::default() })
    }

    fn put_node(&mut self, op: &str, inputs: Vec<String>, node: NodeDef) -> Result<String> {
        let name = format!("{op}/_{}", self.graph.nodes.len());
        self.add(NodeDef { name, inputs, ..node })
    }

    /// Adds a node. Many datasets may have the same constant as an input, so their graph may be larger than they are.
    fn add(&mut self, node: NodeDef) -> Result<String> {
        self.bytes += node.attrs.values().map(length).sum::<usize>();
        if self.bytes > MAX_MESSAGE {
            return Err(exhausted!("The graph of a dataset is larger than 2 GiB, the limit of a message"));
        }
        let name = node.name.clone();
        self.graph.nodes.push(Arc::new(node));
        Ok(name)
    }
}

/// The length of an attribute in a message, in bytes.
fn length(value: &AttrValue) -> usize {
    match value {
        AttrValue::Tensor(tensor) => tensor.encoded().message_len(),
        _ => attr_to_bytes(value).len(),
    }
}

/// The node of a dataset, with the types and shapes of its elements.
fn described(node: &NodeDef, handle: &Handle) -> NodeDef {
    let mut node = node.clone();
    let spec = handle.dataset.spec().clone();
    for (name, value) in [("output_types", types_attr(spec.types)), ("output_shapes", shapes_attr(spec.shapes))] {
        if let Some(attr) = node.attrs.get_mut(name) {
            *attr = value;
        }
    }
    node
}

pub(crate) fn types_attr(types: Vec<DType>) -> AttrValue {
    AttrValue::List(Box::new(AttrList { types, ..AttrList::default() }))
}

pub(crate) fn shapes_attr(shapes: Vec<PartialShape>) -> AttrValue {
    AttrValue::List(Box::new(AttrList { shapes, ..AttrList::default() }))
}

/// Removes jobs and tasks from the devices of the nodes in functions, except for those that call Python: their task has
/// the interpreter.
pub(crate) fn without_devices(graph: GraphDef) -> Result<GraphDef> {
    let mut library = graph.library;
    for function in library.functions.values_mut() {
        *function = Arc::new(local(function)?);
    }
    Ok(GraphDef { library, ..graph })
}

fn local(function: &FunctionDef) -> Result<FunctionDef> {
    let nodes = function.nodes.iter().map(|node| match node.device.is_empty() || node.op == "PyFunc" {
        true => Ok(node.clone()),
        false => Ok(Arc::new(NodeDef { device: local_device(&node.device)?, ..(**node).clone() })),
    });
    let nodes = nodes.collect::<Result<_>>()?;
    Ok(FunctionDef { nodes, encoded: Default::default(), ..function.clone() })
}

fn local_device(device: &str) -> Result<String> {
    let spec =
        DeviceSpec::read(device).map_err(|cure| invalid!("Malformed device specification '{device}': {cure}"))?;
    Ok(DeviceSpec { kind: spec.kind, id: spec.id, ..DeviceSpec::default() }.to_string())
}
