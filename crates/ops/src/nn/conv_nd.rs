//! Conv: convolution over images or volumes, with any number of batch axes.

use super::conv::run_forward;
use super::geometry::{Geometry, Layout, Padding};
use math::gemm::Epilogue;
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid, unimplemented_op};
use tensor::{PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Conv(input: T, filter: T) -> output: T; T: {half, bfloat16, float, double, int32}; strides: list(int); \
          padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
          data_format: {\"CHANNELS_FIRST\", \"CHANNELS_LAST\"} = \"CHANNELS_LAST\"; dilations: list(int) = []; \
          batch_dims: int = 1; groups: int = 1",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[0].rank().map_or(PartialShape::unknown(), PartialShape::of_rank)])
}

/// The attributes of a node, which are checked when the rank of its input is known.
#[derive(Clone)]
struct Attributes {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    padding: String,
    explicit: Vec<i64>,
    channels_first: bool,
    batch_dims: i64,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.int("groups")? != 1 {
        return Err(unimplemented_op!("Grouped/Depthwise Convolutions are not supported yet."));
    }
    let attributes = Attributes {
        strides: setup.ints("strides")?,
        dilations: setup.ints("dilations")?,
        padding: setup.string("padding")?,
        explicit: setup.ints("explicit_paddings")?,
        channels_first: setup.string("data_format")? == "CHANNELS_FIRST",
        batch_dims: setup.int("batch_dims")?,
    };
    let format = if attributes.channels_first { "NCHW" } else { "" };
    for_types!(setup, setup.dtype("T")?, [f32, f64, f16, bf16, i32], T => Ok(binary(move |ctx, input, filter| {
        let batch = attributes.batch_shape(input.shape())?;
        let spatial = input.shape().rank() - 1 - batch.len();
        if filter.elements() == 0 {
            return Err(invalid!("filter must not have zero elements (i.e. all dimensions must be non-zero)"));
        }
        let flat = flattened(input, batch.len())?;
        let geometry = attributes.geometry(spatial)?;
        check_filter(&geometry, flat.shape(), filter.shape())?;
        if !format.is_empty() {
            let name = if spatial == 2 { "Conv2D" } else { "Conv3D" };
            return Err(unimplemented_op!(
                "The {name} op currently only supports the NHWC tensor format on the CPU. The op was given the \
                 format: {format}"
            ));
        }
        let output = run_forward::<T>(ctx, &geometry, flat, &filter, Epilogue::NONE)?;
        let dims = [batch.as_slice(), &output.shape()[1..]].concat();
        output.reshaped(Shape::from(dims))
    }).heavy()))
}

/// The tensor with its batch axes joined.
fn flattened(input: Tensor, batch: usize) -> Result<Tensor> {
    let (outer, inner) = input.shape().split_at(batch);
    let dims = [&[outer.iter().product()], inner].concat();
    input.reshaped(Shape::from(dims))
}

fn check_filter(geometry: &Geometry, input: &Shape, filter: &Shape) -> Result<()> {
    if !(4..=5).contains(&filter.rank()) {
        return Err(invalid!("The filter must be rank 4 or 5 but got {}", filter.rank()));
    }
    let (depth, found) = (input[geometry.layout.channel_axis()], filter[filter.rank() - 2]);
    match depth == found {
        true => Ok(()),
        false => Err(invalid!("Input depth must be equal to filter depth: {depth} vs {found}")),
    }
}

impl Attributes {
    /// The sizes of the batch axes.
    fn batch_shape(&self, input: &Shape) -> Result<Vec<usize>> {
        let spatial = input.rank() as i64 - 1 - self.batch_dims;
        if self.batch_dims < 0 || !(2..=3).contains(&spatial) {
            return Err(invalid!("The input must have 2 or 3 spatial dimensions but got {spatial}"));
        }
        Ok(input[..self.batch_dims as usize].to_vec())
    }

    fn geometry(&self, spatial: usize) -> Result<Geometry> {
        let layout = Layout { channels_first: self.channels_first, spatial };
        if self.strides.len() != spatial + 2 {
            return Err(invalid!("Sliding window strides field must specify {} dimensions", spatial + 2));
        }
        let outer = |values: &[i64]| values[0] == 1 && values[layout.channel_axis()] == 1;
        if !outer(&self.strides) {
            return Err(invalid!("Current implementation does not support strides in the batch and depth dimensions."));
        }
        let strides = positive(layout.spatial_of(&self.strides, 1))
            .ok_or_else(|| invalid!("Spatial strides should be larger than 0."))?;
        let mut dilations = [1; 3];
        if !self.dilations.is_empty() {
            if self.dilations.len() != spatial + 2 {
                return Err(invalid!("Dilation rates field must specify{}dimensions", spatial + 2));
            }
            if !outer(&self.dilations) {
                return Err(invalid!(
                    "Current implementation does not support dilation rates in the batch and depth dimensions."
                ));
            }
            dilations = positive(layout.spatial_of(&self.dilations, 1))
                .ok_or_else(|| invalid!("Dilated rates should be larger than 0."))?;
        }
        Ok(Geometry { layout, strides, dilations, padding: self.padding(layout)? })
    }

    fn padding(&self, layout: Layout) -> Result<Padding> {
        match self.padding.as_str() {
            "EXPLICIT" => Padding::explicit(&self.explicit, layout),
            _ if !self.explicit.is_empty() => {
                Err(invalid!("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"))
            }
            "SAME" => Ok(Padding::Same),
            _ => Ok(Padding::Valid),
        }
    }
}

fn positive(values: [i64; 3]) -> Option<[usize; 3]> {
    values.iter().all(|&value| value > 0).then(|| values.map(|value| value as usize))
}
