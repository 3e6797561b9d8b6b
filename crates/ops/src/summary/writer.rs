//! Handles of event files: ops that create, flush and close them.

use super::text;
use super::writer_state::{Patience, SummaryWriter};
use crate::checkpoint::systems;
use crate::data_structures::named::{Unnamed, find, place_name};
use graph::{Node, Output, Scope};
use op::shapes::{none, scalar};
use op::{Home, Inputs, Kernel, Op, Setup, handle_of, many, outputs, source};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "SummaryWriter() -> writer: resource; shared_name: string = \"\"; container: string = \"\"; stateful",
        scalar, handle_kernel;
    "CreateSummaryFileWriter(writer: resource, logdir: string, max_queue: int32, flush_millis: int32, \
     filename_suffix: string); stateful", none, file_kernel;
    "CreateSummaryDbWriter(writer: resource, db_uri: string, experiment_name: string, run_name: string, \
     user_name: string); stateful", none, database_kernel;
    "FlushSummaryWriter(writer: resource); stateful", none, flush_kernel;
    "CloseSummaryWriter(writer: resource); stateful", none, close_kernel;
};

/// The handle of an event file that has yet to be made.
pub fn summary_writer(scope: &Scope, shared_name: &str) -> Output {
    scope.op("SummaryWriter").attr("shared_name", shared_name).output()
}

/// Creates an event file in a folder, unless the handle already has one.
pub fn create_summary_file_writer(writer: &Output, folder: &Output, queue: &Output, millis: &Output) -> Node {
    let scope = writer.scope();
    let suffix = scope.op("Const").attr("value", Tensor::string(".v2")).attr("dtype", tensor::DType::STRING).output();
    let op = scope.op("CreateSummaryFileWriter").input(writer).input(folder).input(queue).input(millis);
    op.input(&suffix).node()
}

/// Flushes the file, so that readers see all events.
pub fn flush_summary_writer(writer: &Output) -> Node {
    writer.scope().op("FlushSummaryWriter").input(writer).node()
}

/// Completes an event file.
pub fn close_summary_writer(writer: &Output) -> Node {
    writer.scope().op("CloseSummaryWriter").input(writer).node()
}

fn handle_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (container, name, _) = place_name(setup, Unnamed::ByNode)?;
    let handle = Home::of(setup).handle::<SummaryWriter>(&container, &name, Vec::new());
    let tensor = Tensor::from_handles(Shape::scalar(), vec![handle])?;
    Ok(source(move |_| Ok(tensor.clone())).free())
}

fn file_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, systems) = (Home::of(setup), systems(setup)?);
    Ok(many(move |_, mut inputs| {
        let handle = inputs.tensor(0)?;
        let folder = text(&string_input(&mut inputs, 1, "logdir")?.to_string_scalar()?);
        let events = number_input::<i32>(&mut inputs, 2, "max_queue")?;
        let millis = number_input::<i32>(&mut inputs, 3, "flush_millis")?;
        let suffix = text(&string_input(&mut inputs, 4, "filename_suffix")?.to_string_scalar()?);
        let handle = handle_of(&handle)?;
        if home.find::<SummaryWriter>(handle).is_ok() {
            return Ok(outputs![]);
        }
        // Opening the file may take time, and must not block ops that look for other resources.
        let made = SummaryWriter::create(&systems, &folder, Patience { events, millis }, &suffix)?;
        home.find_or_create(handle, || Ok(made))?;
        Ok(outputs![])
    })
    .heavy())
}

fn string_input(inputs: &mut Inputs, index: usize, name: &str) -> Result<Tensor> {
    let tensor = inputs.tensor(index)?;
    match tensor.shape().rank() {
        0 => Ok(tensor),
        _ => Err(invalid!("{name} must be a scalar")),
    }
}

fn number_input<T: Element>(inputs: &mut Inputs, index: usize, name: &str) -> Result<T> {
    string_input(inputs, index, name)?.to_scalar()
}

fn database_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, _| Err(unimplemented_op!("Summaries are written to event files here, not to databases"))))
}

fn flush_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        find::<SummaryWriter>(&home, &inputs.tensor(0)?)?.flush()?;
        Ok(outputs![])
    })
    .heavy())
}

fn close_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let tensor = inputs.tensor(0)?;
        let handle = handle_of(&tensor)?;
        let writer = home.find::<SummaryWriter>(handle)?;
        home.resources_of(handle)?.remove::<SummaryWriter>(&handle.container, &handle.name);
        writer.flush()?;
        Ok(outputs![])
    })
    .heavy())
}
