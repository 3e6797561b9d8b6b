//! Elements as blocks of bytes of one width, for code that only moves them.

use status::{Result, internal};
use tensor::{Bytes, ResourceHandle, Tensor, Variant};

/// Something a tensor holds many of: as many bytes as an element (or a run of them) has, or a string, a handle, a variant.
pub(crate) trait Unit: Clone + Default + Send + Sync + 'static {
    /// All units of a tensor.
    fn of(tensor: &Tensor) -> Result<&[Self]>;
    /// All units of a tensor, mutable.
    fn of_mut(tensor: &mut Tensor) -> Result<&mut [Self]>;

    /// The first unit of a tensor that may be missing; zero if it is, or if the tensor is empty.
    fn first_or_zero(tensor: Option<&Tensor>) -> Result<Self> {
        let all = tensor.map(Self::of).transpose()?.unwrap_or_default();
        Ok(all.first().cloned().unwrap_or_default())
    }
}

macro_rules! plain_units {
    ($($width:literal),*) => {$(
        impl Unit for [u8; $width] {
            fn of(tensor: &Tensor) -> Result<&[Self]> {
                let buffer = tensor.buffer().ok_or_else(|| not_plain(tensor))?;
                Ok(buffer.bytes().as_chunks().0)
            }

            fn of_mut(tensor: &mut Tensor) -> Result<&mut [Self]> {
                Ok(tensor.bytes_mut()?.as_chunks_mut().0)
            }
        }
    )*};
}

plain_units!(1, 2, 4, 8, 16);

fn not_plain(tensor: &Tensor) -> status::Error {
    internal!("elements of type {} have no raw bytes", tensor.dtype())
}

impl Unit for Bytes {
    fn of(tensor: &Tensor) -> Result<&[Bytes]> {
        tensor.strings()
    }

    fn of_mut(tensor: &mut Tensor) -> Result<&mut [Bytes]> {
        Ok(tensor.strings_mut()?)
    }
}

impl Unit for ResourceHandle {
    fn of(tensor: &Tensor) -> Result<&[ResourceHandle]> {
        tensor.handles()
    }

    fn of_mut(tensor: &mut Tensor) -> Result<&mut [ResourceHandle]> {
        tensor.handles_mut()
    }
}

impl Unit for Variant {
    fn of(tensor: &Tensor) -> Result<&[Variant]> {
        tensor.variants()
    }

    fn of_mut(tensor: &mut Tensor) -> Result<&mut [Variant]> {
        tensor.variants_mut()
    }
}

/// `for_runs!(dtype, run, (E, width) => body)`: `E` and `width` such that `run` elements of `dtype`, which always move
/// together, are `width` units `E`. The body may treat runs of one unit (`width == 1`) specially.
macro_rules! for_runs {
    ($dtype:expr, $run:expr, ($E:ident, $width:ident) => $body:expr) => {{
        let (dtype, run): (tensor::DType, usize) = ($dtype, $run);
        match (dtype, dtype.size() * run) {
            (tensor::DType::STRING, _) => for_runs!(@ tensor::Bytes, run, ($E, $width) => $body),
            (tensor::DType::RESOURCE, _) => for_runs!(@ tensor::ResourceHandle, run, ($E, $width) => $body),
            (tensor::DType::VARIANT, _) => for_runs!(@ tensor::Variant, run, ($E, $width) => $body),
            (_, 2) => for_runs!(@ [u8; 2], 1, ($E, $width) => $body),
            (_, 4) => for_runs!(@ [u8; 4], 1, ($E, $width) => $body),
            (_, 8) => for_runs!(@ [u8; 8], 1, ($E, $width) => $body),
            (_, 16) => for_runs!(@ [u8; 16], 1, ($E, $width) => $body),
            (_, bytes) => for_runs!(@ [u8; 1], bytes, ($E, $width) => $body),
        }
    }};
    (@ $unit:ty, $units:expr, ($E:ident, $width:ident) => $body:expr) => {{
        type $E = $unit;
        let $width: usize = $units;
        $body
    }};
}

/// `for_units!(dtype, E => body)`: `E` such that one element of `dtype` is one unit.
macro_rules! for_units {
    ($dtype:expr, $E:ident => $body:expr) => {
        for_runs!($dtype, 1, ($E, _width) => $body)
    };
}
