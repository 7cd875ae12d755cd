//! PNG in and out: draws modules, and finds the code in a picture; absent: any other format, and photographs: what is
//! darker than the mean of the brightest and the darkest pixel is dark.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};
use rqrr::PreparedImage;

use super::UnreadableQr;
use super::draw::Modules;
use super::finders::finder_patterns;

/// How many pixels wide a module is drawn.
const SCALE: usize = 8;

/// The longest side of a picture that is read, in pixels. The largest code there is has 185 modules with its margin.
const SIDE_MAX: u32 = 2_048;

/// How many finder patterns a picture of one code may seem to have: it has three, and its data may look like some more.
/// The search for the code takes time with their cube.
const FINDERS_MAX: usize = 8;

/// The most memory that reading a picture may take, in bytes.
const MEMORY_MAX: usize = 32 << 20;

/// A grey PNG of the modules.
pub(super) fn write(modules: &Modules) -> Result<Vec<u8>, UnreadableQr> {
    let side = modules.side() * SCALE;
    let pixels: Vec<u8> = (0..side * side)
        .map(|index| if modules.is_dark(index % side / SCALE, index / side / SCALE) { 0 } else { 255 })
        .collect();
    grey_png(side, &pixels)
}

/// A square picture of these pixels.
pub(super) fn grey_png(side: usize, pixels: &[u8]) -> Result<Vec<u8>, UnreadableQr> {
    let mut png = Vec::new();
    let side = u32::try_from(side).map_err(|_| UnreadableQr::Code)?;
    let mut encoder = Encoder::new(&mut png, side, side);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
    written.map_err(|_| UnreadableQr::Code)?;
    Ok(png)
}

/// The text of the one code in a PNG.
pub(super) fn read(png: &[u8]) -> Result<String, UnreadableQr> {
    let (width, height, grey) = grey(png).ok_or(UnreadableQr::Picture)?;
    let dark = dark(&grey);
    if finder_patterns(&dark, width) > FINDERS_MAX {
        return Err(UnreadableQr::NoCode);
    }
    let mut image = PreparedImage::prepare_from_bitmap(width, height, |x, y| dark[y * width + x]);
    let grids = image.detect_grids();
    let [grid] = grids.as_slice() else { return Err(UnreadableQr::NoCode) };
    let (_, text) = grid.decode().map_err(|_| UnreadableQr::NoCode)?;
    Ok(text)
}

/// Which pixels are dark.
fn dark(grey: &[u8]) -> Vec<bool> {
    let (darkest, brightest) = (grey.iter().min().copied(), grey.iter().max().copied());
    let mean = darkest.unwrap_or_default().midpoint(brightest.unwrap_or_default());
    grey.iter().map(|pixel| *pixel < mean).collect()
}

/// Width, height and the brightness of every pixel; what is transparent is light.
fn grey(png: &[u8]) -> Option<(usize, usize, Vec<u8>)> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), Limits { bytes: MEMORY_MAX });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width > SIDE_MAX || height > SIDE_MAX {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let bright = |pixel: &[u8]| match *pixel {
        [grey] => grey,
        [grey, alpha] => over_white(grey, alpha),
        [red, green, blue] => mean(red, green, blue),
        [red, green, blue, alpha] => over_white(mean(red, green, blue), alpha),
        _ => u8::MAX,
    };
    let samples = frame.color_type.samples();
    let grey: Vec<u8> = pixels[..frame.buffer_size()].chunks_exact(samples).map(bright).collect();
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    (grey.len() == width * height).then_some((width, height, grey))
}

fn mean(red: u8, green: u8, blue: u8) -> u8 {
    let sum = u16::from(red) + u16::from(green) + u16::from(blue);
    u8::try_from(sum / 3).unwrap_or(u8::MAX)
}

fn over_white(grey: u8, alpha: u8) -> u8 {
    let (grey, alpha) = (u16::from(grey), u16::from(alpha));
    u8::try_from((grey * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
}
