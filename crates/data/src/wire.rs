//! Conversion of options and compressed elements to and from their messages.

use crate::{Options, Rewrite, Rewrites};
use prost::Message;
use proto::tensorflow::NameAttrList;
use proto::tensorflow::data as pb;
use status::{Result, internal, invalid};
use tensor::wire::{decode_shape, encode_shape};
use tensor::{Bytes, DType, Shape};

/// Options as a message.
pub(crate) type OptionsMessage = pb::Options;

/// How many names of frameworks are kept when options are merged: the list grows with each merge.
const FRAMEWORKS: usize = 64;

/// Adds serialised options to others, which they replace where both are set.
pub(crate) fn merge(options: &mut OptionsMessage, serialized: &Bytes) -> Result<()> {
    options.merge(serialized.clone()).map_err(|_| invalid!("Could not parse serialized_options as valid Options."))?;
    options.framework_type.truncate(FRAMEWORKS);
    Ok(())
}

/// The message in bytes.
pub(crate) fn encoded(options: &OptionsMessage) -> Bytes {
    options.encode_to_vec().into()
}

/// What the options mean for a pipeline.
pub(crate) fn decoded(options: &OptionsMessage) -> Options {
    let threading = options.threading_options.unwrap_or_default();
    let autotune = options.autotune_options.unwrap_or_default();
    let optimization = options.optimization_options.unwrap_or_default();
    let count = |value: Option<i32>| value.and_then(|value| usize::try_from(value).ok());
    let enabled = autotune.enabled.unwrap_or(true);
    Options {
        deterministic: options.deterministic,
        max_intra_op_parallelism: count(threading.max_intra_op_parallelism),
        private_threadpool_size: count(threading.private_threadpool_size),
        autotune: enabled,
        cpu_budget: count(autotune.cpu_budget).filter(|&threads| threads > 0),
        ram_budget: autotune.ram_budget.and_then(|bytes| u64::try_from(bytes).ok()).filter(|&bytes| bytes > 0),
        rewrites: rewrites(&optimization, enabled),
    }
}

/// The rewrites that the user asked for, and those that are made unless the user says otherwise.
fn rewrites(options: &pb::OptimizationOptions, autotune: bool) -> Rewrites {
    let default = options.apply_default_optimizations.unwrap_or(true);
    let choices = [
        (Rewrite::NoopElimination, options.noop_elimination, default),
        (Rewrite::ShuffleAndRepeatFusion, options.shuffle_and_repeat_fusion, default),
        (Rewrite::MapParallelization, options.map_parallelization, default),
        (Rewrite::MapFusion, options.map_fusion, false),
        (Rewrite::FilterFusion, options.filter_fusion, false),
        (Rewrite::MapAndFilterFusion, options.map_and_filter_fusion, false),
        (Rewrite::MapAndBatchFusion, options.map_and_batch_fusion, default),
        (Rewrite::FilterParallelization, options.filter_parallelization, false),
        (Rewrite::InjectPrefetch, options.inject_prefetch, default),
    ];
    let is_made = |rewrite: Rewrite, chosen| chosen && (autotune || !rewrite.needs_autotune());
    let made = choices.into_iter().filter(|&(rewrite, chosen, default)| is_made(rewrite, chosen.unwrap_or(default)));
    made.map(|(rewrite, ..)| rewrite).collect()
}

/// The name and the names of the attributes in a NameAttrList message.
pub(crate) fn name_and_attrs(message: &Bytes) -> Result<(String, Vec<String>)> {
    let message = NameAttrList::decode(message.clone()).map_err(|error| invalid!("{error}"))?;
    Ok((message.name, message.attr.into_keys().collect()))
}

/// The parts of a compressed element.
#[derive(Default)]
pub(crate) struct CompressedParts {
    /// The components, one behind the other, compressed with Snappy.
    pub data: Bytes,
    /// What each component is.
    pub components: Vec<ComponentPart>,
}

/// A component of a compressed element.
pub(crate) struct ComponentPart {
    pub dtype: DType,
    pub shape: Shape,
    /// The sizes of its strings, or its size.
    pub sizes: Vec<u64>,
}

impl CompressedParts {
    /// Parses the message.
    pub(crate) fn decode(message: &Bytes) -> Result<CompressedParts> {
        let message = pb::CompressedElement::decode(message.clone())
            .map_err(|error| invalid!("Could not parse a compressed element: {error}"))?;
        if message.version != 0 {
            return Err(internal!("Unsupported compressed element version: {}", message.version));
        }
        let part = |metadata: pb::CompressedComponentMetadata| {
            Ok(ComponentPart {
                dtype: DType::from_number(metadata.dtype),
                shape: decode_shape(metadata.tensor_shape.as_ref())?,
                sizes: metadata.uncompressed_bytes,
            })
        };
        let components = message.component_metadata.into_iter().map(part).collect::<Result<_>>()?;
        Ok(CompressedParts { data: message.data, components })
    }

    /// The message.
    pub(crate) fn encode(&self) -> Bytes {
        let metadata = |part: &ComponentPart| pb::CompressedComponentMetadata {
            dtype: part.dtype.number(),
            tensor_shape: Some(encode_shape(&part.shape)),
            uncompressed_bytes: part.sizes.clone(),
        };
        let component_metadata = self.components.iter().map(metadata).collect();
        pb::CompressedElement { data: self.data.clone(), component_metadata, version: 0 }.encode_to_vec().into()
    }
}
