//! Writes pictures as PNG files.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Writes a picture of `width` times `height` pixels, three bytes each, row by row.
pub fn write(path: &Path, width: usize, height: usize, rgb: &[u8]) -> io::Result<()> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    Ok(writer.finish()?)
}
