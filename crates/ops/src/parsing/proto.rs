//! DecodeProtoV2 and EncodeProto: the fields of messages of any type as tensors, and back.

use super::spec::strings;
use crate::checkpoint::systems;
use graph::ShapeQuery;
use io::message::{Definition, Field, Kind, Scalar, definition, read_fields, write_field};
use op::{Kernel, Op, Outputs, Setup, Value, many, outputs};
use status::{Result, exhausted, invalid};
use tensor::{Bytes, DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "DecodeProtoV2(bytes: string) -> sizes: int32, values: [output_types]; message_type: string; \
     field_names: list(string); output_types: list(type) >= 0; descriptor_source: string = \"local://\"; \
     message_format: string = \"binary\"; sanitize: bool = false", decoded_shapes, decode_kernel;
    "EncodeProto(sizes: int32, values: [Tinput_types]) -> bytes: string; field_names: list(string); \
     message_type: string; descriptor_source: string = \"local://\"; Tinput_types: list(type) >= 1",
        encoded_shape, encode_kernel;
};

fn decoded_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let fields = query.outputs.saturating_sub(1) as i64;
    let with = |last: i64| match query.inputs[0].dims() {
        Some(dims) => PartialShape::new(&[dims, &[last]].concat()),
        None => PartialShape::unknown(),
    };
    Ok((0..query.outputs).map(|output| with(if output == 0 { fields } else { -1 })).collect())
}

fn encoded_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![match query.inputs[0].dims() {
        Some([prefix @ .., _]) => PartialShape::new(prefix),
        _ => PartialShape::unknown(),
    }])
}

/// The fields a node names, and their message.
fn fields(setup: &Setup<'_>) -> Result<(Definition, Vec<Field>)> {
    let message = setup.string("message_type")?;
    let definition = definition(&*systems(setup)?, &setup.bytes("descriptor_source")?, &message)?;
    let field = |name: Bytes| {
        let name = String::from_utf8_lossy(&name);
        definition.field(&name).ok_or_else(|| invalid!("Unknown field: {name} in message type {message}"))
    };
    let fields = strings(setup, "field_names")?.into_iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok((definition, fields))
}

/// Whether values of a field can be elements of this type.
fn fits(kind: Kind, dtype: DType) -> bool {
    match kind {
        Kind::Double => dtype == DType::F64,
        Kind::Float => dtype == DType::F32 || dtype == DType::F64,
        Kind::Int64 | Kind::Sfixed64 | Kind::Sint64 => dtype == DType::I64,
        Kind::Uint64 | Kind::Fixed64 => dtype == DType::U64,
        Kind::Int32 | Kind::Sfixed32 | Kind::Sint32 => dtype == DType::I32 || dtype == DType::I64,
        Kind::Uint32 | Kind::Fixed32 => dtype == DType::U32 || dtype == DType::U64,
        Kind::Bool => dtype == DType::BOOL,
        Kind::Enum => dtype == DType::I32,
        Kind::String | Kind::Group | Kind::Message | Kind::Bytes => dtype == DType::STRING,
    }
}

/// The C++ name of a kind, which errors use.
fn native_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Double => "double",
        Kind::Float => "float",
        Kind::Int64 | Kind::Sfixed64 | Kind::Sint64 => "int64",
        Kind::Uint64 | Kind::Fixed64 => "uint64",
        Kind::Int32 | Kind::Sfixed32 | Kind::Sint32 => "int32",
        Kind::Uint32 | Kind::Fixed32 => "uint32",
        Kind::Bool => "bool",
        Kind::Enum => "enum",
        Kind::String | Kind::Bytes => "string",
        Kind::Group | Kind::Message => "message",
    }
}

fn decode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (definition, fields) = fields(setup)?;
    let types = setup.types("output_types")?;
    if types.len() != fields.len() {
        return Err(invalid!("field_names and output_types attributes must have the same length"));
    }
    if let Some((field, &dtype)) = fields.iter().zip(&types).find(|(field, dtype)| !fits(field.kind, **dtype)) {
        let (name, native) = (&field.full_name, native_name(field.kind));
        return Err(invalid!("Unexpected output type for {name}: {native} to {}", dtype.proto_name()));
    }
    let (format, sanitize) = (setup.string("message_format")?, setup.bool("sanitize")?);
    if format != "binary" && format != "text" {
        return Err(invalid!("format must be one of binary or text"));
    }
    Ok(many(move |_, mut inputs| {
        let messages = inputs.tensor(0)?;
        if messages.elements() == 0 {
            return Err(invalid!("Bufs argument must contain at least one value"));
        }
        let binary = |message: &Bytes| match (format.as_str(), sanitize) {
            ("text", _) => definition.from_text(message),
            (_, true) => definition.sanitized(message.clone()),
            _ => Ok(message.clone()),
        };
        decode(&messages, &fields, &types, binary)
    })
    .heavy())
}

fn decode(
    messages: &Tensor,
    fields: &[Field],
    types: &[DType],
    binary: impl Fn(&Bytes) -> Result<Bytes>,
) -> Result<Outputs> {
    // Values of all messages, field by field, and how many each message has.
    let mut columns: Vec<(Vec<Scalar>, Vec<usize>)> = vec![Default::default(); fields.len()];
    for message in messages.strings()? {
        let starts: Vec<usize> = columns.iter().map(|(values, _)| values.len()).collect();
        read_fields(&binary(message)?, fields, |index, value| {
            let values = &mut columns[index].0;
            if !fields[index].is_repeated {
                values.truncate(starts[index]); // the last counts
            }
            values.push(value);
        })?;
        for ((values, counts), start) in columns.iter_mut().zip(starts) {
            counts.push(values.len() - start);
        }
    }
    let prefix = messages.shape().dims();
    let sizes: Vec<i32> = (0..messages.elements())
        .flat_map(|message| columns.iter().map(move |(_, counts)| counts[message] as i32))
        .collect();
    let sizes = Tensor::from_slice([prefix, &[fields.len()]].concat(), &sizes)?;
    let mut outputs: Outputs = outputs![sizes];
    for (((values, counts), field), &dtype) in columns.into_iter().zip(fields).zip(types) {
        outputs.push(Value::from(dense(values, &counts, &field.default, dtype, prefix)?));
    }
    Ok(outputs)
}

/// Rows of values, short ones filled with the default; at least one value wide.
fn dense(values: Vec<Scalar>, counts: &[usize], default: &Scalar, dtype: DType, prefix: &[usize]) -> Result<Tensor> {
    let width = counts.iter().copied().max().unwrap_or(0).max(1);
    let shape = Shape::new(&[prefix, &[width]].concat());
    let (size, mut all) = (shape.checked_elements()?, Vec::new());
    all.try_reserve_exact(size)
        .map_err(|_| exhausted!("OOM when allocating tensor with shape{shape} and type {dtype}"))?;
    let mut values = values.into_iter();
    for (row, &count) in counts.iter().enumerate() {
        all.extend(values.by_ref().take(count));
        all.resize((row + 1) * width, default.clone());
    }
    fn typed<T: Element>(shape: Shape, values: Vec<Scalar>, narrow: fn(&Scalar) -> T) -> Result<Tensor> {
        Tensor::from_slice(shape, &values.iter().map(narrow).collect::<Vec<T>>())
    }
    match dtype {
        DType::I32 => typed(shape, all, |value| integer(value) as i32),
        DType::I64 => typed(shape, all, integer),
        DType::U32 => typed(shape, all, |value| integer(value) as u32),
        DType::U64 => typed(shape, all, |value| integer(value) as u64),
        DType::F32 => typed(shape, all, |value| number(value) as f32),
        DType::F64 => typed(shape, all, number),
        DType::BOOL => typed(shape, all, |value| *value == Scalar::Bool(true)),
        _ => Tensor::from_strings(shape, all.into_iter().map(string).collect()),
    }
}

fn integer(value: &Scalar) -> i64 {
    match value {
        Scalar::Int(value) => *value,
        Scalar::Uint(value) => *value as i64,
        _ => 0,
    }
}

fn number(value: &Scalar) -> f64 {
    match value {
        Scalar::Number(value) => *value,
        _ => 0.0,
    }
}

fn string(value: Scalar) -> Bytes {
    match value {
        Scalar::Bytes(value) => value,
        _ => Bytes::new(),
    }
}

fn encode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (_, fields) = fields(setup)?;
    let names = strings(setup, "field_names")?;
    if setup.types("Tinput_types")?.len() != fields.len() {
        return Err(invalid!("Length of inputs list must match field_names"));
    }
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|&index| fields[index].number);
    Ok(many(move |_, mut inputs| {
        let (sizes, values) = (inputs.tensor(0)?, inputs.tensors_from(1)?);
        let prefix = checked_prefix(&fields, &names, &values)?;
        let sizes = checked_sizes(&sizes, &prefix, &values)?;
        let mut messages = Vec::new();
        for (row, sizes) in sizes.chunks_exact(fields.len()).enumerate() {
            let mut message = Vec::new();
            for &index in order.iter().filter(|&&index| sizes[index] > 0) {
                let width = values[index].shape().last().copied().unwrap_or(0);
                let cells = scalars(&values[index], row * width, sizes[index] as usize)?;
                write_field(&fields[index], &cells, &mut message);
            }
            messages.push(message.into());
        }
        Ok(outputs![Tensor::from_strings(prefix, messages)?])
    })
    .heavy())
}

/// The shape of the messages, which all values agree on.
fn checked_prefix(fields: &[Field], names: &[Bytes], values: &[Tensor]) -> Result<Shape> {
    let mut common: Option<&[usize]> = None;
    for ((field, name), value) in fields.iter().zip(names).zip(values) {
        let name = String::from_utf8_lossy(name);
        if !fits(field.kind, value.dtype()) {
            let kind = format!("{:?}", field.kind).to_lowercase();
            let dtype = value.dtype();
            return Err(invalid!("Incompatible type for field {name}.  Saw dtype: {dtype} but field type is: {kind}"));
        }
        let [prefix @ .., _] = value.shape().dims() else {
            return Err(not_a_matrix(&name, value));
        };
        if prefix.is_empty() {
            return Err(not_a_matrix(&name, value));
        }
        if *common.get_or_insert(prefix) != prefix {
            return Err(invalid!("Values must match up to the last dimension"));
        }
    }
    Ok(Shape::new(common.unwrap_or_default()))
}

fn not_a_matrix(name: &str, value: &Tensor) -> status::Error {
    let shape = value.shape();
    invalid!("Invalid shape for field {name}.  Saw shape {shape} but it should be at least a matrix.")
}

/// How many values of each field each message gets.
fn checked_sizes<'a>(sizes: &'a Tensor, prefix: &Shape, values: &[Tensor]) -> Result<&'a [i32]> {
    let expected = Shape::new(&[prefix.dims(), &[values.len()]].concat());
    if *sizes.shape() != expected {
        let found = sizes.shape();
        return Err(invalid!(
            "sizes should be batch_size + [len(field_names)].  Saw: {found} but expected: {expected}"
        ));
    }
    let sizes = sizes.values::<i32>()?;
    for (field, value) in values.iter().enumerate() {
        let most = value.shape().last().copied().unwrap_or(0);
        for (message, row) in sizes.chunks_exact(values.len()).enumerate() {
            if usize::try_from(row[field]).is_ok_and(|size| size > most) {
                return Err(invalid!(
                    "Size to write must not be larger than value tensor; but saw: {} > {most} at message {message} \
                     field {field}",
                    row[field]
                ));
            }
        }
    }
    Ok(sizes)
}

/// Elements of a tensor, one by one.
fn scalars(tensor: &Tensor, start: usize, count: usize) -> Result<Vec<Scalar>> {
    fn typed<T: Element>(tensor: &Tensor, start: usize, count: usize, wide: fn(T) -> Scalar) -> Result<Vec<Scalar>> {
        Ok(tensor.values::<T>()?[start..][..count].iter().map(|&value| wide(value)).collect())
    }
    match tensor.dtype() {
        DType::I32 => typed(tensor, start, count, |value: i32| Scalar::Int(value.into())),
        DType::I64 => typed(tensor, start, count, Scalar::Int),
        DType::U32 => typed(tensor, start, count, |value: u32| Scalar::Uint(value.into())),
        DType::U64 => typed(tensor, start, count, Scalar::Uint),
        DType::F32 => typed(tensor, start, count, |value: f32| Scalar::Number(value.into())),
        DType::F64 => typed(tensor, start, count, Scalar::Number),
        DType::BOOL => typed(tensor, start, count, Scalar::Bool),
        _ => Ok(tensor.strings()?[start..][..count].iter().cloned().map(Scalar::Bytes).collect()),
    }
}
