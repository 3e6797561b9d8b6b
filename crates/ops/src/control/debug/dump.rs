//! Writes tensors to the folders of a debugger, in the layout that tfdbg reads.

use crate::checkpoint::systems;
use crate::control::clock::micros_since_epoch;
use io::FileSystems;
use io::event::{Event, EventWhat, SummaryData, SummaryMetadata, SummaryValue};
use op::Setup;
use status::{Result, internal, invalid, unavailable, unimplemented_op};
use std::sync::Arc;
use tensor::{Bytes, Tensor};

/// The tensor that a node of a debugger watches, and where it goes.
pub(super) struct Dump {
    systems: Arc<FileSystems>,
    urls: Vec<String>,
    gated: bool,
    device: String,
    node: String,
    slot: i32,
    op: String,
    /// What follows the name of the op in names of files.
    role: String,
}

impl Dump {
    /// As the attributes of a node say.
    pub fn of(setup: &Setup<'_>) -> Result<Dump> {
        let tensor = setup.string("tensor_name")?;
        let (node, slot) = split_name(&tensor)?;
        let urls = setup.list("debug_urls")?.strings.iter().map(|url| String::from_utf8_lossy(url).into_owned());
        Ok(Dump {
            systems: systems(setup)?,
            urls: urls.collect(),
            gated: setup.bool("gated_grpc")?,
            device: setup.string("device_name")?,
            node,
            slot,
            op: setup.def().op.clone(),
            role: role(setup)?,
        })
    }

    /// False for a node that waits until a debugger at the end of a connection opens its gate.
    pub fn is_open(&self) -> bool {
        !self.gated || self.urls.iter().any(|url| !url.starts_with("grpc://"))
    }

    /// Sends a tensor to all places.
    pub fn publish(&self, tensor: &Tensor) -> Result<()> {
        self.urls.iter().try_for_each(|url| self.publish_to(url, tensor))
    }

    fn publish_to(&self, url: &str, tensor: &Tensor) -> Result<()> {
        if let Some(root) = url.strip_prefix("file://") {
            return self.write(root, tensor);
        }
        if url.starts_with("grpc://") {
            return Err(unimplemented_op!(
                "Debugging over {url} is not supported here: dump to a file:// URL, and read the dumps with tfdbg"
            ));
        }
        Err(unavailable!("Invalid debug target URL: {url}"))
    }

    fn write(&self, root: &str, tensor: &Tensor) -> Result<()> {
        let micros = micros_since_epoch();
        let device = self.device.replace(':', "_").replace('/', ",");
        let file = format!("{}_{}_{}{}_{micros}", self.node, self.slot, self.op, self.role);
        let path = format!("{}/_tfdbg_device_{device}/{file}", root.trim_end_matches('/'));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.systems.create_dirs(folder)?;
        let unused = self.unused(path)?;
        self.systems.write(&unused, &self.event(tensor, micros)?)
    }

    /// The path, with a number at its end if a file has it: two tensors may be written in one microsecond.
    fn unused(&self, path: String) -> Result<String> {
        let mut unused = path.clone();
        let mut number = 0;
        while self.systems.exists(&unused)? {
            number += 1;
            unused = format!("{path}-{number}");
        }
        Ok(unused)
    }

    fn event(&self, tensor: &Tensor, micros: u64) -> Result<Bytes> {
        let content =
            format!("{{\"device\":{:?},\"outputSlot\":{},\"numChunks\":1,\"chunkIndex\":0}}", self.device, self.slot);
        let metadata = SummaryMetadata {
            plugin_name: "debugger".to_string(),
            plugin_content: content.into(),
            ..SummaryMetadata::default()
        };
        let value = SummaryValue {
            tag: self.node.clone(),
            node_name: format!("{}:{}:{}", self.node, self.slot, self.op),
            metadata: Some(metadata),
            data: SummaryData::Tensor(tensor.clone()),
        };
        let what = EventWhat::Summary(vec![value]);
        Event { wall_time: micros as f64, step: 0, what, writer: None }.to_message()
    }
}

/// Which input or output of a node the tensor is, where the node says so.
fn role(setup: &Setup<'_>) -> Result<String> {
    if setup.find("io_of_node").is_none() {
        return Ok(String::new());
    }
    let (node, is_input) = (setup.string("io_of_node")?, setup.bool("is_input")?);
    match node.is_empty() {
        true => Ok(String::new()),
        false => Ok(format!("_{}_{}_{}", node.replace('/', "_"), i32::from(is_input), setup.int("io_index")?)),
    }
}

/// The node and the output of a tensor's name. A name that leads out of the folder is refused.
fn split_name(tensor: &str) -> Result<(String, i32)> {
    let items: Vec<&str> = tensor.split(':').collect();
    let (node, slot) = match items[..] {
        [""] => return Err(invalid!("Failed to parse tensor name: \"\"")),
        [node] => (node, 0),
        [node, slot] => {
            let number = slot.parse();
            (node, number.map_err(|_| invalid!("Invalid string value for output_slot: \"{slot}\""))?)
        }
        _ => return Err(invalid!("Failed to parse tensor name: \"{tensor}\"")),
    };
    match node.split('/').any(|part| part == "..") {
        true => Err(internal!("The tensor name \"{tensor}\" is not a name of a node")),
        false => Ok((node.to_string(), slot)),
    }
}
