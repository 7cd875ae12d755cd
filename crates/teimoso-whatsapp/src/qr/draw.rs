//! From the text of a code to its modules, and from those to block characters; absent: pictures.

use qrcode::{Color, EcLevel, QrCode};

use super::UnreadableQr;

/// The margin that scanners want around a code, in modules (ISO/IEC 18004 §5.3.8).
const MARGIN: usize = 4;

/// A square of modules, its margin included; `true` is dark.
pub(super) struct Modules {
    side: usize,
    dark: Vec<bool>,
}

impl Modules {
    /// A square without a dark module, before its margin.
    #[cfg(test)]
    pub(super) fn blank(side: usize) -> Self {
        let side = side + 2 * MARGIN;
        Self { side, dark: vec![false; side * side] }
    }

    /// Turns a module over, if there is such a one.
    #[cfg(test)]
    pub(super) fn flip(&mut self, column: usize, row: usize) {
        if column < self.side && row < self.side {
            self.dark[row * self.side + column] ^= true;
        }
    }

    /// How many modules a side has.
    pub(super) fn side(&self) -> usize {
        self.side
    }

    /// Whether a module is dark; those outside are not.
    pub(super) fn is_dark(&self, column: usize, row: usize) -> bool {
        self.dark.get(row * self.side + column).copied().unwrap_or(false)
    }
}

/// The modules of a text.
pub(super) fn modules(code: &str) -> Result<Modules, UnreadableQr> {
    let code = QrCode::with_error_correction_level(code, EcLevel::L).map_err(|_| UnreadableQr::Code)?;
    let width = code.width();
    let side = width + 2 * MARGIN;
    let mut dark = vec![false; side * side];
    for (index, colour) in code.to_colors().into_iter().enumerate() {
        let (row, column) = (index / width + MARGIN, index % width + MARGIN);
        dark[row * side + column] = colour == Color::Dark;
    }
    Ok(Modules { side, dark })
}

/// Two rows of modules in each line; light modules are drawn, dark ones are the terminal's own ground.
pub(super) fn blocks(modules: &Modules) -> String {
    let mut text = String::new();
    for row in (0..modules.side()).step_by(2) {
        for column in 0..modules.side() {
            let below_is_dark = row + 1 == modules.side() || modules.is_dark(column, row + 1);
            text.push(match (modules.is_dark(column, row), below_is_dark) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            });
        }
        text.push('\n');
    }
    text
}
