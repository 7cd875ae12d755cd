//! A plain bar plot, written by hand: rates, and the CPU that each costs. Deliberately absent: scripts, fonts, colours
//! beyond two.

use std::fmt::Write;

use super::ledger::{Measure, Summary};

const WIDTH: f64 = 760.0;
const LABEL: f64 = 240.0;
const VALUE: f64 = 90.0;
const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
const GAP: f64 = 40.0;

/// The plot of the medians; thin lines show the least and the greatest.
pub fn svg(summary: &[Summary], machine: &str) -> String {
    let panels =
        [("per second", Measure::Rate, "#3d6f9e"), ("CPU seconds per 10 000", Measure::Cpu, "#b5652d")];
    let mut inner = String::new();
    let mut y = GAP;
    for (title, measure, colour) in panels {
        // Paced scenarios have a cost and no rate of their own: most of it is waiting and waking.
        let has_rate = |line: &Summary| {
            summary.iter().any(|other| other.scenario == line.scenario && other.measure == Measure::Rate)
        };
        let bars: Vec<&Summary> =
            summary.iter().filter(|line| line.measure == measure && has_rate(line)).collect();
        if !bars.is_empty() {
            y = panel(&mut inner, title, &bars, colour, y) + GAP;
        }
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="8" y="18" fill="#555555">{}</text>
{inner}</svg>
"##,
        escaped(machine)
    )
}

/// Draws one panel; returns where it ends.
fn panel(to: &mut String, title: &str, bars: &[&Summary], colour: &str, top: f64) -> f64 {
    let most = bars.iter().map(|bar| bar.span.1).fold(f64::EPSILON, f64::max);
    let scale = (WIDTH - LABEL - VALUE) / most;
    // Writing to a string does not fail.
    let _written = writeln!(to, r#"<text x="8" y="{:.0}" font-weight="bold">{title}</text>"#, top + 12.0);
    let mut y = top + ROW;
    for bar in bars {
        let (least, greatest) = bar.span;
        let (middle, text_y) = (y + BAR / 2.0, y + BAR - 3.0);
        let end = LABEL + bar.median * scale;
        let _written = writeln!(
            to,
            r##"<text x="{:.0}" y="{text_y:.0}" text-anchor="end">{}</text><rect x="{LABEL:.0}" y="{y:.0}" width="{:.1}" height="{BAR}" fill="{colour}"/><line x1="{:.1}" y1="{middle:.1}" x2="{:.1}" y2="{middle:.1}" stroke="#222222"/><text x="{:.1}" y="{text_y:.0}">{}</text>"##,
            LABEL - 8.0,
            escaped(&bar.scenario),
            bar.median * scale,
            LABEL + least * scale,
            LABEL + greatest * scale,
            end.max(LABEL + greatest * scale) + 6.0,
            bar.measure.show(bar.median),
        );
        y += ROW;
    }
    y
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Spent;
    use crate::report::Ledger;

    #[test]
    fn every_rate_has_a_bar() {
        let mut ledger = Ledger::new();
        ledger.put("limit", Measure::Rate, 100.0, &Spent::default());
        ledger.put("a & b", Measure::Rate, 50.0, &Spent::default());
        ledger.put("limit", Measure::P50, 1.0, &Spent::default());
        ledger.put("latency", Measure::Cpu, 7.0, &Spent::default());
        let svg = svg(&ledger.summary(), "two <cores>");
        assert_eq!(svg.matches("fill=\"#3d6f9e\"").count(), 2);
        assert!(svg.contains("a &amp; b") && svg.contains("two &lt;cores>"));
        assert!(!svg.contains("CPU seconds"));
    }
}
