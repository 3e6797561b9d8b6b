//! Encodes images as JPEG and PNG files.

use ::image::codecs::jpeg::{JpegEncoder, PixelDensity};
use ::image::codecs::png::{CompressionType, FilterType, PngEncoder};
use ::image::{ExtendedColorType, ImageEncoder};
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, unary};
use status::{Result, internal, invalid};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "EncodeJpeg(image: uint8) -> contents: string; format: {\"\", \"grayscale\", \"rgb\"} = \"\"; \
              quality: int = 95; progressive: bool = false; optimize_size: bool = false; \
              chroma_downsampling: bool = true; density_unit: {\"in\", \"cm\"} = \"in\"; x_density: int = 300; \
              y_density: int = 300; xmp_metadata: string = \"\"",
        shape: scalar,
        grad: Grad::Stop,
        kernel: jpeg_kernel,
        facts: PLAIN,
    },
    Op {
        def: "EncodeJpegVariableQuality(images: uint8, quality: int32) -> contents: string",
        shape: scalar,
        grad: Grad::Stop,
        kernel: variable_jpeg_kernel,
        facts: PLAIN,
    },
    Op {
        def: "EncodePng(image: T) -> contents: string; compression: int = -1; T: {uint8, uint16} = uint8",
        shape: batch_shape,
        grad: Grad::Stop,
        kernel: png_kernel,
        facts: PLAIN,
    },
];

fn batch_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![match query.inputs[0].dims() {
        Some(dims) if dims.len() >= 3 => PartialShape::new(&dims[..dims.len() - 3]),
        Some(dims) => return Err(invalid!("Shape must be at least rank 3 but is rank {}", dims.len())),
        None => PartialShape::unknown(),
    }])
}

fn quality(value: i64) -> Result<u8> {
    match u8::try_from(value) {
        Ok(quality) if quality <= 100 => Ok(quality),
        _ => Err(invalid!("quality must be in [0,100], got {value}")),
    }
}

fn jpeg_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (format, quality) = (setup.string("format")?, quality(setup.int("quality")?)?);
    let density = |name: &str| Ok::<_, status::Error>(setup.int(name)?.clamp(1, i64::from(u16::MAX)) as u16);
    let (x, y) = (density("x_density")?, density("y_density")?);
    let per_inch = setup.string("density_unit")? == "in";
    Ok(unary(move |_, image| {
        let channels = match format.as_str() {
            "grayscale" => Some(1),
            "rgb" => Some(3),
            _ => None,
        };
        let found = image.shape().last().copied();
        if let Some(channels) = channels.filter(|_| image.shape().rank() == 3).filter(|&wanted| found != Some(wanted)) {
            return Err(invalid!("format {format} expects {channels} channels, got {}", image.shape()));
        }
        let unit = if per_inch {
            ::image::codecs::jpeg::PixelDensityUnit::Inches
        } else {
            ::image::codecs::jpeg::PixelDensityUnit::Centimeters
        };
        encode_jpeg(&image, quality, PixelDensity { density: (x, y), unit })
    })
    .heavy())
}

fn variable_jpeg_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, image, wanted| {
        if wanted.shape().rank() != 0 {
            return Err(invalid!("quality must be scalar: {}", wanted.shape()));
        }
        encode_jpeg(&image, quality(wanted.to_scalar::<i32>()?.into())?, PixelDensity::dpi(300))
    })
    .heavy())
}

fn encode_jpeg(image: &Tensor, quality: u8, density: PixelDensity) -> Result<Tensor> {
    let &[height, width, channels] = image.shape().dims() else {
        return Err(invalid!("image must be 3-dimensional{}", image.shape()));
    };
    if image.elements() >= i32::MAX as usize {
        return Err(invalid!("Cannot encode images with >= max int32 elements"));
    }
    let color = match channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => return Err(invalid!("image must have 1 or 3 channels, got {}", image.shape())),
    };
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, quality.max(1));
    encoder.set_pixel_density(density);
    let encoded = encoder.encode(image.values::<u8>()?, width as u32, height as u32, color);
    encoded.map_err(|_| internal!("JPEG encoding failed"))?;
    Ok(Tensor::string(bytes))
}

fn png_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let compression = setup.int("compression")?;
    if !(-1..=9).contains(&compression) {
        return Err(invalid!("compression should be in [-1,9], got {compression}"));
    }
    let effort = match compression {
        -1 => CompressionType::Default,
        0..=3 => CompressionType::Fast,
        4..=6 => CompressionType::Default,
        _ => CompressionType::Best,
    };
    let wide = setup.dtype("T")? == DType::U16;
    Ok(unary(move |_, images| encode_png(&images, effort, wide)).heavy())
}

fn encode_png(images: &Tensor, effort: CompressionType, wide: bool) -> Result<Tensor> {
    let &[ref batch @ .., height, width, channels] = images.shape().dims() else {
        return Err(invalid!("images must be at least rank 3{}", images.shape()));
    };
    if images.elements() >= i32::MAX as usize {
        return Err(invalid!("image cannot have >= int32 max elements"));
    }
    let colors = match wide {
        false => [ExtendedColorType::L8, ExtendedColorType::La8, ExtendedColorType::Rgb8, ExtendedColorType::Rgba8],
        true => [ExtendedColorType::L16, ExtendedColorType::La16, ExtendedColorType::Rgb16, ExtendedColorType::Rgba16],
    };
    if !(1..=4).contains(&channels) {
        return Err(invalid!("image must have 1, 2, 3, or 4 channels, got {channels}"));
    }
    let bytes: Vec<u8> = match wide {
        false => images.values::<u8>()?.to_vec(),
        true => images.values::<u16>()?.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    };
    let size = height * width * channels * if wide { 2 } else { 1 };
    let count = Shape::from(batch).elements();
    let mut files: Vec<Bytes> = Vec::new();
    for i in 0..count {
        let pixels = &bytes[i * size..][..size];
        files.push(png_file(pixels, (height, width), colors[channels - 1], effort)?);
    }
    Tensor::from_strings(Shape::from(batch), files)
}

/// A PNG file of these pixels, row by row.
pub(crate) fn png_file(
    pixels: &[u8],
    (height, width): (usize, usize),
    color: ExtendedColorType,
    effort: CompressionType,
) -> Result<Bytes> {
    let mut file = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut file, effort, FilterType::Adaptive);
    let written = encoder.write_image(pixels, width as u32, height as u32, color);
    written.map_err(|_| internal!("PNG encoding failed"))?;
    Ok(file.into())
}
