//! The nodes that save and restore, with the names that TensorFlow's saver gives them.

use super::saveable::{Saveable, Source};
use graph::builtin_ops::CONST;
use graph::{AttrList, AttrValue, DeviceSpec, Node, Output, Scope};
use io::saved_model::Saver as SaverDef;
use layers::{Kind, Variable};
use ops::checkpoint::{RESTORE_V2, SAVE_V2, SHARDED_FILENAME};
use ops::control::group_in;
use ops::raw;
use status::Result;
use std::collections::BTreeMap;
use tensor::{DType, PartialShape, Tensor};

/// The second version of the format: an index and files of data.
const V2: i32 = 2;

/// Adds the nodes that save and restore these variables; gives their names.
pub(super) fn build(scope: &Scope, saveables: &[Saveable], sharded: bool) -> Result<SaverDef> {
    let filename = filename(scope);
    let (saved, restored) = match sharded {
        false => {
            let all: Vec<&Saveable> = saveables.iter().collect();
            let saved = save_to(scope, &filename, &all);
            let assigned = restore_from(scope, &scope.on("/cpu:0"), &filename, &all);
            (saved, group_in(&scope.named("restore_all"), &assigned))
        }
        true => {
            let shards = by_device(saveables)?;
            let saved = save_shards(scope, &filename, &shards)?;
            (saved, restore_shards(scope, &filename, &shards)?)
        }
    };
    Ok(SaverDef {
        filename_tensor: filename.name(),
        save_tensor: saved.name(),
        restore_op: restored.name(),
        sharded,
        version: V2,
        ..SaverDef::default()
    })
}

/// The tensor that is fed with the name of the checkpoint.
fn filename(scope: &Scope) -> Output {
    let input = constant(scope, "filename/input", "model".into());
    let with_default =
        |name: &str, input: &Output| raw::placeholder_with_default(input, &PartialShape::scalar()).named(name).output();
    with_default(CONST, &with_default("filename", &input))
}

fn constant(scope: &Scope, name: &str, value: Tensor) -> Output {
    raw::const_(scope, &value, value.dtype()).named(name).output()
}

/// Writes variables to one checkpoint; the result is its name.
fn save_to(scope: &Scope, filename: &Output, saveables: &[&Saveable]) -> Output {
    let save = unique(scope, SAVE_V2);
    let (names, slices) = names_and_slices(scope, &save, saveables);
    let values: Vec<Output> = saveables.iter().map(|saveable| saveable.value()).collect();
    let saved = raw::save_v2(&filename.seen_from(scope), &names, &slices, &values).named(&save).node();
    let beside = raw::identity(&filename.seen_from(&scope.after([&saved]))).named("control_dependency");
    beside.attr("_class", beside_attr(filename.node())).output()
}

/// Reads variables from a checkpoint in the scope `at` and assigns their values; gives the nodes that assign.
fn restore_from(scope: &Scope, at: &Scope, filename: &Output, saveables: &[&Saveable]) -> Vec<Node> {
    let restore = unique(scope, RESTORE_V2);
    let (names, slices) = names_and_slices(at, &restore, saveables);
    let dtypes: Vec<DType> = saveables.iter().map(|saveable| saveable.dtype()).collect();
    let read = raw::restore_v2(&filename.seen_from(at), &names, &slices, &dtypes).named(&restore).node();
    let assign = |(place, saveable): (usize, &&Saveable)| assign(scope, saveable, &read.output(place));
    saveables.iter().enumerate().map(assign).collect()
}

fn names_and_slices(scope: &Scope, of: &str, saveables: &[&Saveable]) -> (Output, Output) {
    let names: Vec<String> = saveables.iter().map(|saveable| saveable.key.clone()).collect();
    let slices: Vec<String> = saveables.iter().map(|saveable| saveable.slice.clone()).collect();
    let names = constant(scope, &format!("{of}/tensor_names"), names.into());
    (names, constant(scope, &format!("{of}/shape_and_slices"), slices.into()))
}

/// Gives the value that was read to a variable or an iterator.
fn assign(scope: &Scope, saveable: &Saveable, value: &Output) -> Node {
    let scope = scope.on_any_device().on(&saveable.device);
    match &saveable.source {
        Source::Variable(variable) => assign_variable(&scope, variable, value),
        Source::Iterator(iterator, _) => iterator.restore(&scope, value),
    }
}

fn assign_variable(scope: &Scope, variable: &Variable, value: &Output) -> Node {
    let handle = &variable.handle().seen_from(scope);
    match variable.kind() {
        Kind::Resource => {
            let value = raw::identity(&value.seen_from(scope)).output();
            raw::assign_variable_op(handle, &value).node()
        }
        Kind::Reference => {
            let known = variable.shape().known().is_some();
            let op = raw::assign(handle, value).attr("use_locking", true);
            op.attr("validate_shape", known).attr("_class", beside_attr(handle.node())).node()
        }
    }
}

/// The variables by the device they are on, in order of the devices.
type Shards<'a> = Vec<(String, Vec<&'a Saveable>)>;

fn by_device(saveables: &[Saveable]) -> Result<Shards<'_>> {
    let mut shards: BTreeMap<String, Vec<&Saveable>> = BTreeMap::new();
    for saveable in saveables {
        let device = DeviceSpec::parse(&saveable.device)?.to_string();
        shards.entry(device).or_default().push(saveable);
    }
    Ok(shards.into_iter().collect())
}

/// Every device writes its variables to a checkpoint of its own; then these become one.
fn save_shards(scope: &Scope, filename: &Output, shards: &Shards<'_>) -> Result<Output> {
    let host = scope.on("/cpu:*");
    let is_s3 = raw::static_regex_full_match(&filename.seen_from(&host), "^s3://.*").output();
    let (part, folder) = (constant(&host, CONST, ".part".into()), constant(&host, CONST, "_temp/part".into()));
    let suffix = raw::select(&is_s3, &part, &folder).output();
    let prefix = raw::string_join(&host, &[filename.clone(), suffix]).attr("separator", "").output();
    let count = constant(scope, "num_shards", (shards.len() as i32).into());
    let (mut prefixes, mut saved) = (Vec::new(), Vec::new());
    let mut last = scope.clone();
    for (shard, (device, saveables)) in shards.iter().enumerate() {
        let place = scope.on(&on_cpu(device)?);
        let name = unique(scope, SHARDED_FILENAME);
        let number = constant(&place, &format!("{name}/shard"), (shard as i32).into());
        let own = raw::sharded_filename(&prefix.seen_from(&place), &number, &count).named(&name).output();
        saved.push(save_to(&place, &own, saveables).node().clone());
        prefixes.push(own);
        last = place;
    }
    let after = last.after(&saved);
    let packed = raw::pack(&after, &prefixes).named("MergeV2Checkpoints/checkpoint_prefixes").output();
    let merge = raw::merge_v2_checkpoints(&packed.seen_from(&last), filename).attr("delete_old_dirs", true).node();
    Ok(raw::identity(&filename.seen_from(&after.after([&merge]))).output())
}

/// Every device reads its own variables.
fn restore_shards(scope: &Scope, filename: &Output, shards: &Shards<'_>) -> Result<Node> {
    let mut restored = Vec::new();
    for (device, saveables) in shards {
        let assigned = restore_from(scope, &scope.on(&on_cpu(device)?), filename, saveables);
        restored.push(raw::no_op(&scope.on(device).after(&assigned)).named("restore_shard").node());
    }
    Ok(group_in(&scope.named("restore_all"), &restored))
}

/// The first processor of the task of a device.
fn on_cpu(device: &str) -> Result<String> {
    let spec = DeviceSpec::parse(device)?;
    Ok(DeviceSpec { kind: Some("CPU".to_string()), id: Some(0), ..spec }.to_string())
}

/// The name the next node of an op gets in a scope, without the scope: its constants are called after it.
fn unique(scope: &Scope, op: &str) -> String {
    let taken = |name: &str| Node::find(scope, &format!("{}{name}", scope.prefix())).is_some();
    let numbered = |number: usize| if number == 0 { op.to_string() } else { format!("{op}_{number}") };
    (0..).map(numbered).find(|name| !taken(name)).unwrap_or_else(|| op.to_string())
}

fn beside_attr(node: &Node) -> AttrValue {
    let strings = vec![format!("loc:@{}", node.name()).into()];
    AttrValue::from(AttrList { strings, ..AttrList::default() })
}
