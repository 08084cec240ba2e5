//! How sure one may be of what was counted.
//!
//! All figures take instances as independent. Scheduling makes neighbouring instances alike, so an interval is a lower
//! bound of the true uncertainty.

use statrs::function::gamma::ln_gamma;

/// Probability that an interval or bound is to hold with.
pub const CONFIDENCE: f64 = 0.95;

/// Successes among trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proportion {
    count: u64,
    total: u64,
}

/// A closed interval of probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Proportion {
    /// `count` successes among `total` trials; more successes than trials count as `total`.
    pub fn new(count: u64, total: u64) -> Proportion {
        Proportion { count: count.min(total), total }
    }

    /// Relative frequency; 0 without trials.
    pub fn rate(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.count as f64 / self.total as f64 }
    }

    /// The two-sided Clopper–Pearson interval at [`CONFIDENCE`]: the probabilities under which neither so few nor so
    /// many successes would be a surprise. Without trials, everything from 0 to 1.
    pub fn interval(self) -> Interval {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let (count, total) = (self.count as f64, self.total as f64);
        let low = if self.count == 0 { 0.0 } else { beta_quantile(count, total - count + 1.0, tail) };
        let high = if self.count == self.total {
            1.0
        } else {
            beta_quantile(count + 1.0, total - count, 1.0 - tail)
        };
        Interval { low, high }
    }
}

/// The probability per instance that what was never seen among `total` instances stays below, at [`CONFIDENCE`]:
/// about 3 ÷ `total`, the rule of three. 1 without instances.
pub fn never_seen_bound(total: u64) -> f64 {
    if total == 0 { 1.0 } else { -((1.0 - CONFIDENCE).ln() / total as f64).exp_m1() }
}

/// The reproducibility score 1 − e^(−n): the chance of seeing again, in a run of the same length, what was seen `count`
/// times, if sightings are a Poisson process at the rate that was measured.
pub fn reproducibility(count: u64) -> f64 {
    -(-(count as f64)).exp_m1()
}

/// The x at which the regularized incomplete beta function I_x(a, b) is `probability`, by bisection.
///
/// (The quantile of statrs does not end for the parameters that a hundred million instances give.)
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Around the mean the tails fall off so fast that twelve deviations hold all that matters.
    let mean = a / (a + b);
    let deviation = (mean * (1.0 - mean) / (a + b + 1.0)).sqrt();
    let (below, above) = (mean - 12.0 * deviation, mean + 12.0 * deviation);
    if below > 0.0 && incomplete_beta(a, b, below) < probability {
        low = below;
    }
    if above < 1.0 && incomplete_beta(a, b, above) > probability {
        high = above;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 1e-12 * high {
            break;
        }
        if incomplete_beta(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The regularized incomplete beta function I_x(a, b) for 0 < x < 1, by its continued fraction (modified Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function. It needs about √(max(a, b)) terms at worst.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const PRECISION: f64 = 1e-13;
    const TERMS: u32 = 2_000_000;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn close(actual: f64, expected: f64, relative: f64) {
        assert!((actual - expected).abs() <= relative * expected.abs(), "{actual:e} is not {expected:e}");
    }

    /// P(X ≥ k) for X binomial (n, p), summed term by term.
    fn upper_tail(k: u64, n: u64, p: f64) -> f64 {
        (k..=n)
            .map(|i| {
                let (i, n) = (i as f64, n as f64);
                (ln_gamma(n + 1.0) - ln_gamma(i + 1.0) - ln_gamma(n - i + 1.0)
                    + i * p.ln()
                    + (n - i) * (-p).ln_1p())
                .exp()
            })
            .sum()
    }

    proptest! {
        /// The definition: at the lower end so many successes have probability 2.5 %, at the upper end so few.
        #[test]
        fn interval_meets_its_definition(total in 1u64..400, share in 0.0f64..=1.0) {
            let count = (share * total as f64) as u64;
            let interval = Proportion::new(count, total).interval();
            if count > 0 {
                close(upper_tail(count, total, interval.low), 0.025, 1e-6);
            }
            if count < total {
                close(1.0 - upper_tail(count + 1, total, interval.high), 0.025, 1e-6);
            }
        }

        #[test]
        fn interval_holds_the_rate(count in 0u64..2_000_000_000, rest in 0u64..2_000_000_000) {
            let proportion = Proportion::new(count, count + rest);
            let interval = proportion.interval();
            prop_assert!(interval.low <= proportion.rate() && proportion.rate() <= interval.high);
            prop_assert!((0.0..=1.0).contains(&interval.low) && (0.0..=1.0).contains(&interval.high));
        }
    }

    /// Table values: 5 of 10, and 0 and 10 of 10 in closed form.
    #[test]
    fn known_intervals() {
        let half = Proportion::new(5, 10).interval();
        close(half.low, 0.187_086, 1e-5);
        close(half.high, 0.812_914, 1e-5);
        let none = Proportion::new(0, 10).interval();
        assert_eq!(none.low, 0.0);
        close(none.high, 1.0 - 0.025_f64.powf(0.1), 1e-9);
        let all = Proportion::new(10, 10).interval();
        close(all.low, 0.025_f64.powf(0.1), 1e-9);
        assert_eq!(all.high, 1.0);
    }

    /// Many trials: the interval approaches the normal one, and one success the Poisson one.
    #[test]
    fn many_trials() {
        let (count, total) = (5_000_000_u64, 1_000_000_000_u64);
        let interval = Proportion::new(count, total).interval();
        let rate = count as f64 / total as f64;
        let deviation = (rate * (1.0 - rate) / total as f64).sqrt();
        close(interval.low, rate - 1.959_964 * deviation, 1e-5);
        close(interval.high, rate + 1.959_964 * deviation, 1e-5);
        let once = Proportion::new(1, total).interval();
        close(once.low, 0.025_317_8e-9, 1e-5);
        close(once.high, 5.571_643e-9, 1e-5);
    }

    #[test]
    fn nothing_tried_nothing_known() {
        let proportion = Proportion::new(0, 0);
        assert_eq!(proportion.rate(), 0.0);
        assert_eq!(proportion.interval(), Interval { low: 0.0, high: 1.0 });
        assert_eq!(never_seen_bound(0), 1.0);
    }

    #[test]
    fn rule_of_three() {
        close(never_seen_bound(1_000_000), 2.995_728e-6, 1e-6);
        close(never_seen_bound(1), 0.95, 1e-12);
    }

    #[test]
    fn reproducibility_saturates() {
        assert_eq!(reproducibility(0), 0.0);
        close(reproducibility(1), 0.632_120_6, 1e-6);
        close(reproducibility(12), 0.999_993_9, 1e-6);
        assert_eq!(reproducibility(u64::MAX), 1.0);
    }
}
