//! The axes of a uniform quantized convolution, from the serialized message in its attribute.

use status::{Result, invalid};

/// The axes of one tensor of a convolution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axes {
    /// Images of the input and the output; filters of the kernel.
    pub outer: usize,
    /// Channels.
    pub feature: usize,
    /// Height, width and so on.
    pub spatial: Vec<usize>,
}

impl Axes {
    /// All axes: first the outer one, then channels, then those of the image.
    pub fn order(&self) -> Vec<usize> {
        [&[self.outer, self.feature], self.spatial.as_slice()].concat()
    }
}

/// The axes of all tensors of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct DimensionNumbers {
    /// Axes of the input.
    pub input: Axes,
    /// Axes of the filters.
    pub kernel: Axes,
    /// Axes of the output.
    pub output: Axes,
}

/// The numbers of a message by field; fields that are missing are zero or empty.
pub(crate) type Fields = [Vec<i64>; 10];

/// Reads a message whose fields are integers.
pub(crate) fn parse(mut bytes: &[u8]) -> Result<Fields> {
    let error = || invalid!("Error parsing convolution dimension numbers.");
    let mut fields = Fields::default();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes).ok_or_else(error)?;
        let length = if tag & 7 == 2 { varint(&mut bytes).ok_or_else(error)? as usize } else { 0 };
        let mut packed = match tag & 7 {
            0 => None,
            2 => Some(bytes.split_off(..length).ok_or_else(error)?),
            _ => return Err(error()),
        };
        let mut discarded = Vec::new();
        let field = fields.get_mut((tag >> 3) as usize).unwrap_or(&mut discarded);
        match &mut packed {
            None => field.push(varint(&mut bytes).ok_or_else(error)? as i64),
            Some(packed) => {
                while !packed.is_empty() {
                    field.push(varint(packed).ok_or_else(error)? as i64);
                }
            }
        }
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl DimensionNumbers {
    /// The axes of tensors of this rank; without fields, channels follow the outer axis.
    pub fn of(fields: &Fields, rank: usize) -> Result<DimensionNumbers> {
        if fields[3].is_empty() {
            let axes = Axes { outer: 0, feature: 1, spatial: (2..rank).collect() };
            return Ok(DimensionNumbers { input: axes.clone(), kernel: axes.clone(), output: axes });
        }
        Ok(DimensionNumbers {
            input: axes(rank, [&fields[1], &fields[2], &fields[3]])?,
            kernel: axes(rank, [&fields[5], &fields[4], &fields[6]])?,
            output: axes(rank, [&fields[7], &fields[8], &fields[9]])?,
        })
    }
}

fn axes(rank: usize, [outer, feature, spatial]: [&[i64]; 3]) -> Result<Axes> {
    let single = |numbers: &[i64]| axis(rank, numbers.last().copied().unwrap_or(0));
    let (outer, feature) = (single(outer)?, single(feature)?);
    if spatial.len() != rank - 2 {
        return Err(invalid!(
            "Spatial dimensions size must be rank - 2. Given rank {rank} and spatial dimensions size {}",
            spatial.len()
        ));
    }
    let spatial = spatial.iter().map(|&number| axis(rank, number)).collect::<Result<Vec<_>>>()?;
    let axes = Axes { outer, feature, spatial };
    let mut order = axes.order();
    order.sort_unstable();
    match order.iter().copied().eq(0..rank) {
        true => Ok(axes),
        false => Err(invalid!("Each dimension number must occur once. Given {:?}", axes.order())),
    }
}

fn axis(rank: usize, number: i64) -> Result<usize> {
    usize::try_from(number).ok().filter(|&axis| axis < rank).ok_or_else(|| {
        invalid!(
            "Each dimension number must be in region [0, rank). Given rank {rank} and dimension number value {number}"
        )
    })
}
