//! Decodes JPEG, PNG, GIF and BMP files.

use super::bmp;
use ::image::codecs::gif::GifDecoder;
use ::image::{AnimationDecoder, DynamicImage, ImageFormat, ImageReader};
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::io::Cursor;
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DecodeJpeg(contents: string) -> image: uint8; channels: int = 0; ratio: int = 1; \
              fancy_upscaling: bool = true; try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; \
              dct_method: string = \"\"",
        shape: image_shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeAndCropJpeg(contents: string, crop_window: int32) -> image: uint8; channels: int = 0; \
              ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; \
              acceptable_fraction: float = 1.0; dct_method: string = \"\"",
        shape: image_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodePng(contents: string) -> image: dtype; channels: int = 0; dtype: {uint8, uint16} = uint8",
        shape: image_shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeGif(contents: string) -> image: uint8",
        shape: frames_shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeBmp(contents: string) -> image: uint8; channels: int = 0",
        shape: image_shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeWebP(contents: string) -> image: dtype; channels: int = 0; dtype: {uint8} = uint8",
        shape: webp_shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodeImage(contents: string) -> image: dtype; channels: int = 0; \
              dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true",
        shape: op::shapes::unknown,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExtractJpegShape(contents: string) -> image_shape: output_type; \
              output_type: {int32, int64} = int32",
        shape: vector_of_three,
        grad: Grad::Stop,
        kernel: jpeg_shape_kernel,
        facts: PLAIN,
    },
];

fn image_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let channels = match query.attr("channels") {
        Ok(graph::AttrValue::Int(channels)) if *channels > 0 => *channels,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[-1, -1, channels])])
}

fn frames_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[-1, -1, -1, 3])])
}

fn webp_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let frame = image_shape(query)?;
    let channels = frame[0].dims().map_or(-1, |dims| dims[2]);
    Ok(vec![PartialShape::new(&[-1, -1, -1, channels])])
}

fn vector_of_three(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[3])])
}

/// The requested format, from the op and its attributes.
#[derive(Clone, Debug)]
struct Request {
    op: String,
    channels: usize,
    ratio: usize,
    dtype: DType,
    expand_animations: bool,
}

impl Request {
    /// Whether what is read from a file that may have several images has an axis of frames.
    fn frames(&self) -> bool {
        self.op != "DecodeImage" || self.expand_animations
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let op = setup.def().op.clone();
    let ratio = setup.int("ratio").unwrap_or(1);
    if ![1, 2, 4, 8].contains(&ratio) {
        return Err(invalid!("ratio must be 1, 2, 4, or 8, got {ratio}"));
    }
    let method = setup.string("dct_method").unwrap_or_default();
    if !["", "INTEGER_FAST", "INTEGER_ACCURATE"].contains(&method.as_str()) {
        return Err(invalid!("dct_method must be one of {{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}}"));
    }
    let channels = if op == "DecodeGif" { 3 } else { setup.int("channels")? };
    if ![0, 1, 3, 4].contains(&channels) {
        return Err(invalid!("`channels` must be 0, 1, 3 or 4 but got {channels}"));
    }
    let request = Request {
        channels: channels as usize,
        ratio: ratio as usize,
        dtype: setup.dtype("dtype").unwrap_or(DType::U8),
        expand_animations: setup.bool("expand_animations").unwrap_or(true),
        op,
    };
    Ok(many(move |_, mut inputs| Ok(outputs![run(&request, &mut inputs)?])).heavy())
}

fn run(request: &Request, inputs: &mut Inputs) -> Result<Tensor> {
    let contents = contents(&inputs.tensor(0)?)?;
    match format(&contents)? {
        ImageFormat::Jpeg => {
            let window = if request.op == "DecodeAndCropJpeg" { Some(inputs.tensor(1)?) } else { None };
            decode_jpeg(request, &contents, window)
        }
        ImageFormat::Png => decode_png(request, &contents),
        ImageFormat::Gif => decode_gif(request, &contents),
        ImageFormat::WebP => super::webp::decode(&contents, request.channels, request.dtype, request.frames()),
        _ => decode_bmp(request, &contents),
    }
}

fn contents(tensor: &Tensor) -> Result<tensor::Bytes> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("`contents` must be scalar but got shape{}", tensor.shape()));
    }
    match tensor.to_string_scalar()? {
        bytes if bytes.is_empty() => Err(invalid!("Input is empty.")),
        bytes => Ok(bytes),
    }
}

/// Recognizes the format of a file by its first bytes.
fn format(bytes: &[u8]) -> Result<ImageFormat> {
    let magic: [(&[u8], ImageFormat); 4] = [
        (b"\xff\xd8\xff", ImageFormat::Jpeg),
        (b"\x89PNG\r\n\x1a\n", ImageFormat::Png),
        (b"GIF8", ImageFormat::Gif),
        (b"BM", ImageFormat::Bmp),
    ];
    if bytes.len() > 12 && bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP") {
        return Ok(ImageFormat::WebP);
    }
    let found = magic.iter().find(|(magic, _)| bytes.starts_with(magic));
    found
        .map(|(_, format)| *format)
        .ok_or_else(|| invalid!("Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."))
}

/// The error for a file that is read by an op for another format.
fn wrong_op(request: &Request, found: &str) -> Result<()> {
    match request.op.as_str() {
        "DecodeBmp" => Err(invalid!(
            "Trying to decode {found} format using DecodeBmp op. Use `decode_{}` or `decode_image` instead.",
            found.to_lowercase()
        )),
        "DecodeAndCropJpeg" if found != "JPEG" => {
            Err(invalid!("DecodeAndCropJpeg operation can run on JPEG only, but detected {found}."))
        }
        _ => Ok(()),
    }
}

/// Rows of pixels of 8 or 16 bits a channel.
struct Pixels {
    height: usize,
    width: usize,
    channels: usize,
    values: Vec<u16>,
    /// The highest value of a channel.
    top: u16,
}

fn read(bytes: &[u8], format: ImageFormat) -> Option<DynamicImage> {
    // The reader's default limits keep a small file from asking for much memory.
    ImageReader::with_format(Cursor::new(bytes), format).decode().ok()
}

impl Pixels {
    fn new(image: DynamicImage) -> Pixels {
        let (width, height) = (image.width() as usize, image.height() as usize);
        let channels = usize::from(image.color().channel_count());
        let wide = image.color().bytes_per_pixel() as usize / channels.max(1) > 1;
        let bytes = image.into_bytes();
        let values = match wide {
            true => bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect(),
            false => bytes.into_iter().map(u16::from).collect(),
        };
        Pixels { height, width, channels, values, top: if wide { u16::MAX } else { 255 } }
    }

    /// Converts to the requested number of channels: grey is repeated or computed by `grey`, alpha dropped or made
    /// opaque.
    fn with_channels(mut self, wanted: usize, grey: impl Fn([u16; 3]) -> u16) -> Pixels {
        let (found, top) = (self.channels, self.top);
        if wanted == 0 || wanted == found {
            return self;
        }
        let color = |pixel: &[u16]| if found < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
        let alpha = |pixel: &[u16]| if found.is_multiple_of(2) { pixel[found - 1] } else { top };
        let grey = |pixel: &[u16]| if found < 3 { pixel[0] } else { grey(color(pixel)) };
        self.values = match wanted {
            1 => self.values.chunks_exact(found).map(grey).collect(),
            3 => self.values.chunks_exact(found).flat_map(color).collect(),
            _ => {
                let rgba = |pixel: &[u16]| {
                    let [r, g, b] = color(pixel);
                    [r, g, b, alpha(pixel)]
                };
                self.values.chunks_exact(found).flat_map(rgba).collect()
            }
        };
        self.channels = wanted;
        self
    }

    /// Each pixel the mean of a square of them.
    fn shrunk(mut self, ratio: usize) -> Pixels {
        if ratio == 1 {
            return self;
        }
        let (height, width) = (self.height.div_ceil(ratio), self.width.div_ceil(ratio));
        let mut values = Vec::with_capacity(height * width * self.channels);
        for y in 0..height {
            for x in 0..width {
                let ys = y * ratio..((y + 1) * ratio).min(self.height);
                let xs = x * ratio..((x + 1) * ratio).min(self.width);
                for c in 0..self.channels {
                    let at = |(y, x): (usize, usize)| u32::from(self.values[(y * self.width + x) * self.channels + c]);
                    let count = (ys.len() * xs.len()) as u32;
                    let sum: u32 = ys.clone().flat_map(|y| xs.clone().map(move |x| (y, x))).map(at).sum();
                    values.push(((sum + count / 2) / count) as u16);
                }
            }
        }
        (self.height, self.width, self.values) = (height, width, values);
        self
    }

    fn cropped(mut self, [top, left, height, width]: [usize; 4]) -> Pixels {
        let line = self.width * self.channels;
        let rows = self.values.chunks_exact(line.max(1)).skip(top).take(height);
        let (start, end) = (left * self.channels, (left + width) * self.channels);
        self.values = rows.flat_map(|row| row[start..end].to_vec()).collect();
        (self.height, self.width) = (height, width);
        self
    }

    fn into_tensor(self, request: &Request) -> Result<Tensor> {
        let frames = if request.op == "DecodeGif" { vec![1] } else { vec![] };
        let dims = [frames, vec![self.height, self.width, self.channels]].concat();
        converted(request.dtype, Shape::from(dims), &self.values, self.top)
    }
}

/// Values of a type: whole ones keep their place between nothing and the highest, floats are parts of it.
fn converted(dtype: DType, shape: Shape, values: &[u16], top: u16) -> Result<Tensor> {
    let wide = top > 255;
    match dtype {
        DType::U16 => {
            let scale = if wide { 1 } else { 256 };
            Tensor::from_slice(shape, &values.iter().map(|&x| x.wrapping_mul(scale)).collect::<Vec<u16>>())
        }
        DType::F32 => {
            let scale = 1.0 / f32::from(top);
            Tensor::from_slice(shape, &values.iter().map(|&x| f32::from(x) * scale).collect::<Vec<f32>>())
        }
        _ => {
            let shift = if wide { 8 } else { 0 };
            Tensor::from_slice(shape, &values.iter().map(|&x| (x >> shift) as u8).collect::<Vec<u8>>())
        }
    }
}

fn decode_jpeg(request: &Request, bytes: &[u8], window: Option<Tensor>) -> Result<Tensor> {
    if request.channels == 4 {
        return Err(invalid!("JPEG does not support 4 channels"));
    }
    wrong_op(request, "JPEG")?;
    let failed = || invalid!("jpeg::Uncompress failed. Invalid JPEG data or crop window.");
    let window = window.as_ref().map(crop_window).transpose()?;
    let pixels = Pixels::new(read(bytes, ImageFormat::Jpeg).ok_or_else(failed)?);
    let pixels = pixels.with_channels(request.channels, jpeg_grey).shrunk(request.ratio);
    let Some([top, left, height, width]) = window else { return pixels.into_tensor(request) };
    let inside = |start: i64, size: i64, whole: usize| start >= 0 && size > 0 && start + size <= whole as i64;
    if !inside(top, height, pixels.height) || !inside(left, width, pixels.width) {
        return Err(failed());
    }
    pixels.cropped([top, left, height, width].map(|side| side as usize)).into_tensor(request)
}

fn crop_window(window: &Tensor) -> Result<[i64; 4]> {
    if window.shape().rank() != 1 {
        return Err(invalid!("crop_window must be 1-D, got shape {}", window.shape()));
    }
    match *window.values::<i32>()? {
        [top, left, height, width] => Ok([top, left, height, width].map(i64::from)),
        _ => Err(invalid!("crop_size must have four elements {}", window.shape())),
    }
}

fn jpeg_grey([red, green, blue]: [u16; 3]) -> u16 {
    (0.299 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue)).round() as u16
}

/// As in libpng: grey pixels are unchanged, weights have 15 bits, and only 16-bit results are rounded.
fn png_grey([red, green, blue]: [u16; 3], wide: bool) -> u16 {
    if red == green && green == blue {
        return red;
    }
    let sum = 9797 * u32::from(red) + 19234 * u32::from(green) + 3737 * u32::from(blue);
    ((sum + if wide { 1 << 14 } else { 0 }) >> 15) as u16
}

fn decode_png(request: &Request, bytes: &[u8]) -> Result<Tensor> {
    wrong_op(request, "PNG")?;
    let image = read(bytes, ImageFormat::Png);
    let pixels = Pixels::new(image.ok_or_else(|| invalid!("Invalid PNG data, size {}", bytes.len()))?);
    let wide = pixels.top > 255;
    let mut pixels = pixels.with_channels(request.channels, |color| png_grey(color, wide));
    if request.dtype != DType::U8 && pixels.top == 255 {
        // Eight bits become sixteen by repetition, so that white remains white.
        pixels.values.iter_mut().for_each(|x| *x *= 257);
        pixels.top = u16::MAX;
    } else if request.dtype == DType::U8 && pixels.top > 255 {
        pixels.values.iter_mut().for_each(|x| *x >>= 8);
        pixels.top = 255;
    }
    pixels.into_tensor(request)
}

fn decode_gif(request: &Request, bytes: &[u8]) -> Result<Tensor> {
    if request.channels != 0 && request.channels != 3 {
        return Err(invalid!("channels must be 0 or 3 for GIF, got {}", request.channels));
    }
    wrong_op(request, "GIF")?;
    let failed = |why: String| invalid!("Invalid GIF data (size {}), {why}", bytes.len());
    let decoder = GifDecoder::new(Cursor::new(bytes)).map_err(|error| failed(error.to_string()))?;
    let wanted = if request.op == "DecodeImage" && !request.expand_animations { 1 } else { usize::MAX };
    let mut frames = Vec::new();
    for frame in decoder.into_frames().take(wanted) {
        frames.push(frame.map_err(|error| failed(error.to_string()))?.into_buffer());
    }
    let first = frames.first().ok_or_else(|| failed("no frames".to_string()))?;
    let (height, width) = (first.height() as usize, first.width() as usize);
    if matches!(request.op.as_str(), "DecodePng" | "DecodeJpeg") && frames.len() > 1 {
        return Err(invalid!(
            "Got {} frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image",
            frames.len()
        ));
    }
    let flat = matches!(request.op.as_str(), "DecodePng" | "DecodeJpeg") || wanted == 1;
    let dims = if flat { vec![height, width, 3] } else { vec![frames.len(), height, width, 3] };
    let pixels = frames.iter().flat_map(|frame| frame.pixels());
    let values: Vec<u16> = pixels.flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).map(u16::from).collect();
    converted(request.dtype, Shape::from(dims), &values, 255)
}

fn decode_bmp(request: &Request, bytes: &[u8]) -> Result<Tensor> {
    if request.channels == 1 {
        return Err(invalid!("`channels` must be 0, 3 or 4 for BMP, but got 1"));
    }
    match request.op.as_str() {
        "DecodeBmp" | "DecodeImage" => {}
        "DecodeAndCropJpeg" => {
            return Err(invalid!("DecodeAndCropJpeg operation can run on JPEG only, but detected BMP."));
        }
        op => {
            return Err(invalid!(
                "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: {op}"
            ));
        }
    }
    let (dims, values) = bmp::decode(bytes, request.channels)?;
    converted(request.dtype, Shape::from(dims), &values, 255)
}

fn jpeg_shape_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("output_type")? == DType::I64;
    Ok(many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        if input.shape().rank() != 0 {
            return Err(invalid!("contents must be scalar, got shape {}", input.shape()));
        }
        let bytes = input.to_string_scalar()?;
        let [height, width, channels] =
            jpeg_sizes(&bytes).ok_or_else(|| invalid!("Invalid JPEG data, size {}", bytes.len()))?;
        Ok(outputs![match wide {
            true => Tensor::vector(&[height as i64, width as i64, channels as i64]),
            false => Tensor::vector(&[height as i32, width as i32, channels as i32]),
        }])
    }))
}

/// Height, width and channels out of the header of a JPEG file: the first start-of-frame segment.
fn jpeg_sizes(bytes: &[u8]) -> Option<[usize; 3]> {
    if !bytes.starts_with(b"\xff\xd8") {
        return None;
    }
    let mut at = 2;
    loop {
        let &[0xff, marker] = bytes.get(at..at + 2)? else { return None };
        if marker == 0xff {
            at += 1;
            continue;
        }
        let short = |at: usize| Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
        let is_frame = (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker);
        if is_frame {
            return Some([short(at + 5)?, short(at + 7)?, usize::from(*bytes.get(at + 9)?)]);
        }
        at += 2 + short(at + 2)?.max(2);
    }
}
