//! A curve as a drawing: both axes in powers of ten, text as text. The same figures give the same bytes.

use plotters::{
    chart::ChartBuilder,
    drawing::IntoDrawingArea,
    element::Circle,
    prelude::IntoLogRange,
    series::LineSeries,
    style::{Color, IntoFont, RGBColor, WHITE},
};
use plotters_svg::SVGBackend;

use super::curve::Curve;
use crate::{Failure, table::median, table::number};

const SIZE: (u32, u32) = (720, 400);
const LINE: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);
const ROUND: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);

pub fn svg(curve: &Curve) -> Result<String, Failure> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let title = format!("{}: slope {:.2}", curve.what, median(&curve.slopes()));
        let (sizes, costs) = ranges(curve);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18).into_font())
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(sizes.log_scale(), costs.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(curve.size)
            .y_desc(curve.unit)
            .x_label_formatter(&|size| format!("{size:.0}"))
            .y_label_formatter(&|cost| number(*cost))
            .label_style(("sans-serif", 13).into_font())
            .draw()?;
        let rounds = curve.points.iter().flat_map(|point| {
            point.rounds.iter().map(|cost| Circle::new((point.size as f64, *cost), 2, ROUND.filled()))
        });
        chart.draw_series(rounds)?;
        let medians = || curve.points.iter().map(|point| (point.size as f64, median(&point.rounds)));
        chart.draw_series(LineSeries::new(medians(), LINE.stroke_width(2)))?;
        chart.draw_series(medians().map(|point| Circle::new(point, 4, LINE.filled())))?;
        area.present()?;
    }
    Ok(text)
}

/// From a power of ten to a power of ten, and costs over two decades at least: a flat curve must look flat.
fn ranges(curve: &Curve) -> (std::ops::Range<f64>, std::ops::Range<f64>) {
    let sizes = curve.points.iter().map(|point| point.size as f64);
    let costs: Vec<_> = curve.points.iter().flat_map(|point| point.rounds.iter().copied()).collect();
    let lowest = costs.iter().copied().fold(f64::MAX, f64::min);
    let highest = costs.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let (bottom, top) = (10_f64.powf(lowest.log10().floor()), 10_f64.powf(highest.log10().ceil()));
    let top = top.max(bottom * 100.0);
    let (first, last) = (sizes.clone().fold(f64::MAX, f64::min), sizes.fold(1.0, f64::max));
    (first * 0.8..last * 1.25, bottom..top)
}

#[cfg(test)]
mod tests {
    use super::{Curve, svg};

    #[test]
    fn the_same_figures_give_the_same_bytes_and_text_that_is_text() {
        let mut curve =
            Curve { file: "f", what: "a call", unit: "CPU µs", size: "tools", target: 0.1, points: Vec::new() };
        for size in [1, 10, 100, 1000] {
            curve.push(size, vec![5.0, 5.5, 6.0]);
        }
        let drawn = svg(&curve).expect("it can be drawn");
        assert_eq!(drawn, svg(&curve).expect("it can be drawn"));
        assert!(drawn.contains("<text") && drawn.contains("CPU µs"));
    }
}
