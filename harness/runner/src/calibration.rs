//! Adapts the size of dispatches to the intended duration of a submission.

use std::time::Duration;

use crate::stress::Stress;

/// The fraction of the drawn rounds that a dispatch executes, so that a submission has the intended duration.
#[derive(Debug)]
pub(crate) struct Calibration {
    /// The current fraction.
    pub scale: f64,
    target_duration: Duration,
    /// The minimum fraction. If waiting dominates the duration, fewer rounds do not shorten it.
    min_scale: f64,
    /// Dispatches to ignore: a driver may compile the kernel during the first one.
    warm_up: u32,
    /// False if the parameters may depend only on the seed.
    pub is_enabled: bool,
}

impl Calibration {
    const INITIAL_SCALE: f64 = 1.0 / 32.0;
    /// The minimum fraction of a short dispatch, so that partners that meet once interleave hundreds of
    /// instances.
    const MIN_SHORT_SCALE: f64 = 1.0 / 16.0;

    /// Starts calibration for a run.
    pub fn new(stress: &Stress) -> Calibration {
        let (scale, warm_up) = if stress.calibrate { (Calibration::INITIAL_SCALE, 1) } else { (1.0, 0) };
        let aim = Duration::from_millis(stress.submission_ms.into());
        Calibration { scale, target_duration: aim, min_scale: 0.0, warm_up, is_enabled: stress.calibrate }
    }

    /// Starts calibration for dispatches that take at most `aim`, the target duration.
    pub fn for_short_dispatches(stress: &Stress, aim: Duration) -> Calibration {
        let base = Calibration::new(stress);
        Calibration {
            target_duration: aim.min(base.target_duration),
            scale: base.scale.max(Calibration::MIN_SHORT_SCALE),
            min_scale: Calibration::MIN_SHORT_SCALE,
            warm_up: 0,
            ..base
        }
    }

    /// Adapts the fraction to the duration of a dispatch.
    pub fn adapt_scale(&mut self, took: Duration) {
        if !self.is_enabled {
            return;
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        // Halving immediately but doubling only below a third avoids oscillation around the target.
        } else if took > self.target_duration {
            self.scale = (self.scale / 2.0).max(self.min_scale);
        } else if took < self.target_duration / 3 {
            self.scale = (self.scale * 2.0).min(1.0);
        }
    }

    /// Returns true if even one round takes too long.
    pub fn is_round_too_long(&self, rounds: u32, took: Duration) -> bool {
        self.is_enabled && self.warm_up == 0 && rounds == 1 && took > self.target_duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_shrink_short_dispatches_without_bound() {
        let stress = Stress::preset("swiftshader").unwrap();
        let after_waits = |mut calibration: Calibration| {
            (0..30).for_each(|_| calibration.adapt_scale(Duration::from_millis(60)));
            calibration.scale
        };
        assert!(
            after_waits(Calibration::for_short_dispatches(&stress, Duration::from_millis(1))) > 1.0 / 200.0
        );
        assert!(after_waits(Calibration::new(&stress)) < 1.0 / 200.0);
    }
}
