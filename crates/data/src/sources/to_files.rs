//! DatasetToTFRecord and InitializeTableFromDataset: ops that run a dataset to its end.

use crate::attrs::{input_dataset, reading, string_scalar};
use crate::consume::consume;
use crate::{DatasetRef, Element};
use io::{Compression, FileSystems, RecordWriter};
use op::shapes;
use op::{Grad, Home, Inputs, Kernel, Op, PLAIN, Setup, later, outputs};
use ops::checkpoint::systems;
use ops::data_structures::lookup::{Fill, table_to_fill};
use status::{Result, invalid, out_of_range};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DatasetToTFRecord(input_dataset: variant, filename: string, compression_type: string); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, records_kernel),
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalDatasetToTFRecord(input_dataset: variant, filename: string, compression_type: string); \
              stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, records_kernel),
        facts: PLAIN,
    },
    Op {
        def: "InitializeTableFromDataset(table_handle: resource, dataset: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, table_kernel),
        facts: PLAIN,
    },
];

fn records_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, systems) = (Home::of(setup), systems(setup)?);
    Ok(later(move |ctx, mut inputs, done| match begin_records(&mut inputs, &systems) {
        Err(error) => done(Err(error)),
        Ok((dataset, writer)) => {
            let step = |writer: &mut RecordWriter, element: Element| match element.first() {
                Some(record) => writer.write(&record.to_string_scalar()?),
                None => Ok(()),
            };
            consume(ctx, &home, dataset, writer, step, |writer| writer.close().map(|()| outputs![]), done);
        }
    }))
}

fn begin_records(inputs: &mut Inputs, systems: &FileSystems) -> Result<(DatasetRef, RecordWriter)> {
    let name = string_scalar(inputs, 1, "filename")?;
    // Unknown names mean no compression, as in TensorFlow.
    let compression = Compression::from_name(&string_scalar(inputs, 2, "compression_type")?).unwrap_or_default();
    let dataset = input_dataset(inputs, 0)?;
    let writer = RecordWriter::create_on(systems, &name, compression)?;
    let types = &dataset.spec().types;
    if types.len() != 1 {
        return Err(invalid!(
            "ToTFRecordOp currently only support datasets of 1 single column, but got {}",
            types.len()
        ));
    }
    if types[0] != DType::STRING {
        return Err(invalid!("ToTFRecordOp currently only supports DT_STRING dataypes, but got {}", types[0]));
    }
    Ok((dataset, writer))
}

fn table_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(later(move |ctx, mut inputs, done| match begin_table(&home, &mut inputs) {
        Err(error) => done(Err(error)),
        Ok((dataset, table)) => {
            let step = |pairs: &mut [Vec<Tensor>; 2], element: Element| {
                let (Some(key), Some(value)) = (element.first(), element.get(1)) else {
                    return Err(invalid!("Dataset should have two output types only"));
                };
                pairs[0].push(key.clone());
                pairs[1].push(value.clone());
                Ok(())
            };
            let finish = move |pairs: [Vec<Tensor>; 2]| {
                let [keys, values] = pairs.map(column_of);
                let (Some(keys), Some(values)) = (keys?, values?) else { return Err(out_of_range!("end of iterator")) };
                table.fill(keys, values)?;
                Ok(outputs![])
            };
            consume(ctx, &home, dataset, [Vec::new(), Vec::new()], step, finish, done);
        }
    }))
}

/// Scalars as a vector; none if there are no scalars.
fn column_of(scalars: Vec<Tensor>) -> Result<Option<Tensor>> {
    if scalars.is_empty() {
        return Ok(None);
    }
    let elements = scalars.into_iter().map(|scalar| smallvec::smallvec![scalar]).collect();
    crate::transformations::stacked(elements).map(|mut column| column.pop())
}

fn begin_table(home: &Home, inputs: &mut Inputs) -> Result<(DatasetRef, Fill)> {
    let table = table_to_fill(home, inputs.look(0)?)?;
    let dataset = input_dataset(inputs, 1)?;
    let spec = dataset.spec();
    let (&[key, value], [key_shape, value_shape]) = (&spec.types[..], &spec.shapes[..]) else {
        return Err(invalid!("Dataset should have two output types only"));
    };
    for (what, wanted, found) in [("Key", table.key_dtype(), key), ("Value", table.value_dtype(), value)] {
        if wanted != found {
            return Err(invalid!("{what} dtype expected: {wanted} but obtained: {found} from the dataset"));
        }
    }
    for shape in [key_shape, value_shape] {
        if shape.rank().is_some_and(|rank| rank > 0) {
            return Err(invalid!("Expected scalar for key. Obtained: {shape}"));
        }
    }
    Ok((dataset, table))
}
