//! Cost over size, and how steep it is.

pub struct Curve {
    /// What its plot is called.
    pub file: &'static str,
    pub what: &'static str,
    pub unit: &'static str,
    /// What there is more and more of.
    pub size: &'static str,
    /// What the slope may be at most.
    pub target: f64,
    pub points: Vec<Point>,
}

pub struct Point {
    pub size: usize,
    /// One cost per round.
    pub rounds: Vec<f64>,
}

impl Curve {
    pub fn push(&mut self, size: usize, rounds: Vec<f64>) {
        self.points.push(Point { size, rounds });
    }

    /// The slope through all points, for each round.
    pub fn slopes(&self) -> Vec<f64> {
        self.of_rounds(&self.points)
    }

    /// The slope between the last two points, for each round.
    pub fn last_slopes(&self) -> Vec<f64> {
        self.of_rounds(&self.points[self.points.len().saturating_sub(2)..])
    }

    fn of_rounds(&self, points: &[Point]) -> Vec<f64> {
        let rounds = points.iter().map(|point| point.rounds.len()).min().unwrap_or(0);
        let of = |round: usize| slope(points.iter().map(|point| (point.size as f64, point.rounds[round])));
        (0..rounds).map(of).collect()
    }
}

/// The exponent of the power law that fits best, by least squares in logarithms.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<_> = points.map(|(x, y)| (x.ln(), y.ln())).collect();
    let number = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / number;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    above / below
}

#[cfg(test)]
mod tests {
    use super::{Curve, slope};

    #[test]
    fn the_slope_is_the_exponent() {
        let sizes = [1.0_f64, 10.0, 100.0, 1000.0];
        for exponent in [-0.5, 0.0, 0.3, 1.0, 2.0] {
            let found = slope(sizes.iter().map(|size| (*size, 7.0 * size.powf(exponent))));
            assert!((found - exponent).abs() < 1e-9, "{found} instead of {exponent}");
        }
    }

    #[test]
    fn a_curve_that_turns_up_at_its_end_shows_in_the_last_step() {
        let mut curve = Curve { file: "", what: "", unit: "", size: "", target: 0.1, points: Vec::new() };
        for (size, cost) in [(1, 100.0), (10, 10.0), (100, 10.0), (1000, 40.0)] {
            curve.push(size, vec![cost, cost]);
        }
        assert!(curve.slopes()[1] < 0.0);
        assert!(curve.last_slopes()[1] > 0.6);
    }
}
