//! How large dispatches are.

use std::time::Duration;

use crate::stress::Stress;

/// Which part of the drawn rounds a dispatch makes, so that a submission takes as long as it should.
#[derive(Debug)]
pub(crate) struct Calibration {
    /// That part.
    pub scale: f64,
    aim: Duration,
    /// The least part: where waiting is what takes long, fewer rounds take as long.
    least: f64,
    /// Dispatches to leave out: a driver may build the kernel on the first one.
    warm_up: u32,
    /// Whether it learns; without it the drawn parameters depend on the seed alone.
    pub on: bool,
}

impl Calibration {
    const FIRST: f64 = 1.0 / 32.0;
    /// The least part in short dispatches: partners that meet once are to interleave by the hundred.
    const LEAST_SHORT: f64 = 1.0 / 16.0;

    /// At the start of a run.
    pub fn new(stress: &Stress) -> Calibration {
        let (scale, warm_up) = if stress.calibrate { (Calibration::FIRST, 1) } else { (1.0, 0) };
        let aim = Duration::from_millis(stress.submission_ms.into());
        Calibration { scale, aim, least: 0.0, warm_up, on: stress.calibrate }
    }

    /// At the start of a run, for dispatches that are to take so long at most.
    pub fn short(stress: &Stress, aim: Duration) -> Calibration {
        let whole = Calibration::new(stress);
        Calibration {
            aim: aim.min(whole.aim),
            scale: whole.scale.max(Calibration::LEAST_SHORT),
            least: Calibration::LEAST_SHORT,
            warm_up: 0,
            ..whole
        }
    }

    /// Takes note of what a dispatch took.
    pub fn learn(&mut self, took: Duration) {
        if !self.on {
            return;
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else if took > self.aim {
            self.scale = (self.scale / 2.0).max(self.least);
        } else if took < self.aim / 3 {
            self.scale = (self.scale * 2.0).min(1.0);
        }
    }

    /// Whether even one round is too long.
    pub fn stuck(&self, rounds: u32, took: Duration) -> bool {
        self.on && self.warm_up == 0 && rounds == 1 && took > self.aim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_shrink_short_dispatches_to_nothing() {
        let stress = Stress::preset("swiftshader").unwrap();
        let after_waits = |mut calibration: Calibration| {
            (0..30).for_each(|_| calibration.learn(Duration::from_millis(60)));
            calibration.scale
        };
        assert!(after_waits(Calibration::short(&stress, Duration::from_millis(1))) > 1.0 / 200.0);
        assert!(after_waits(Calibration::new(&stress)) < 1.0 / 200.0);
    }
}
