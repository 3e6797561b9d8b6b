//! Decodes uncompressed bitmap files.

use status::{Result, invalid};

/// Dimensions and channels of the pixels of a file, with as many channels as wanted (or those of the file, if 0).
pub(super) fn decode(bytes: &[u8], wanted: usize) -> Result<(Vec<usize>, Vec<u16>)> {
    if bytes.len() < 32 {
        return Err(invalid!(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, got \
             {} bytes",
            bytes.len()
        ));
    }
    let number = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (header, width, height) = (number(10), number(18), number(22));
    let found = i16::from_le_bytes([bytes[28], bytes[29]]) / 8;
    if ![1, 3, 4].contains(&found) {
        return Err(invalid!("Number of channels inherent in the image must be 1, 3 or 4, was {found}"));
    }
    if width <= 0 {
        return Err(invalid!("Width must be positive"));
    }
    if height == 0 {
        return Err(invalid!("Height must be nonzero"));
    }
    if header < 0 {
        return Err(invalid!("header size must be nonnegative"));
    }
    let rows = i64::from(height).abs();
    if i64::from(width) * rows >= i64::from(i32::MAX / 8) {
        return Err(invalid!("Total possible pixel bytes must be less than 2^30"));
    }
    let row = (i64::from(found) * i64::from(width) + 3) / 4 * 4;
    let difference = bytes.len() as i64 - i64::from(header) - row * rows;
    if difference != 0 {
        return Err(invalid!(
            "Input size should match (header_size + row_size * abs_height) but they differ by {difference}"
        ));
    }
    let image = Image { found: found as usize, width: width as usize, row: row as usize, top_down: height < 0 };
    let channels = if wanted == 0 { image.found } else { wanted };
    let values = image.pixels(&bytes[header as usize..], rows as usize, channels);
    Ok((vec![rows as usize, image.width, channels], values))
}

struct Image {
    found: usize,
    width: usize,
    /// Bytes of a row, with what fills it up.
    row: usize,
    top_down: bool,
}

impl Image {
    fn pixels(&self, bytes: &[u8], rows: usize, channels: usize) -> Vec<u16> {
        let mut values = Vec::with_capacity(rows * self.width * channels);
        for y in 0..rows {
            let from = if self.top_down { y } else { rows - 1 - y };
            let row = &bytes[from * self.row..][..self.width * self.found];
            for pixel in row.chunks_exact(self.found) {
                // Files keep blue first.
                let color = if self.found == 1 { [pixel[0]; 3] } else { [pixel[2], pixel[1], pixel[0]] };
                let alpha = if self.found == 4 { pixel[3] } else { 255 };
                let all = [color[0], color[1], color[2], alpha];
                values.extend(all[..channels].iter().map(|&x| u16::from(x)));
            }
        }
        values
    }
}
