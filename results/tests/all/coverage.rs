//! Coverage of the intervals of rates under optional stopping, by simulation.
//!
//! A user who stops a run when the result looks interesting biases an ordinary interval, but not an anytime-valid
//! one. The committed table has the share of simulated runs whose interval contains the true rate.

use std::fmt::Write as _;

use results::statistics::{CONFIDENCE, Interval, Proportion};

/// Simulated runs for each rate and rule in the committed table, which `ci/soak` compares.
const RUNS: u32 = 10_000;
/// Simulated runs in `ci/test`.
const FEW_RUNS: u32 = 1_000;
/// Trials of the longest run.
const MAX_TRIALS: u64 = 1_000;
/// Trials before which no run stops.
const MIN_TRIALS: u64 = 10;

/// When a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoppingRule {
    End,
    /// At the first outcome.
    FirstOutcome,
    /// When the ordinary interval excludes the true rate, which is the worst case for it.
    OrdinaryExcludes,
    /// When the anytime-valid interval excludes the true rate, which is the worst case for it.
    AnytimeExcludes,
}

impl StoppingRule {
    const ALL: [StoppingRule; 4] = [
        StoppingRule::End,
        StoppingRule::FirstOutcome,
        StoppingRule::OrdinaryExcludes,
        StoppingRule::AnytimeExcludes,
    ];

    fn stops(self, count: u64, total: u64, rate: f64) -> bool {
        let proportion = Proportion::new(count, total);
        // Intervals are computed only where a normal approximation does not exclude that the rule applies.
        let deviation = (rate * (1.0 - rate) / total as f64).sqrt();
        let deviates = |limit: f64| (proportion.rate() - rate).abs() > limit * deviation;
        total >= MIN_TRIALS
            && match self {
                StoppingRule::End => false,
                StoppingRule::FirstOutcome => count > 0,
                StoppingRule::OrdinaryExcludes => {
                    deviates(1.9) && !contains_rate(proportion.interval(), rate)
                }
                StoppingRule::AnytimeExcludes => {
                    deviates(2.5) && !contains_rate(proportion.anytime_interval(), rate)
                }
            }
    }
}

fn contains_rate(interval: Interval, rate: f64) -> bool {
    interval.low <= rate && rate <= interval.high
}

/// Returns the shares of runs whose ordinary and anytime-valid intervals contain the rate.
fn simulate(rule: StoppingRule, rate: f64, runs: u32) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut ordinary, mut anytime) = (0, 0);
    for _ in 0..runs {
        let mut count = 0;
        let mut total = 0;
        while total < MAX_TRIALS && !rule.stops(count, total, rate) {
            count += u64::from(uniform() < rate);
            total += 1;
        }
        let proportion = Proportion::new(count, total);
        ordinary += u32::from(contains_rate(proportion.interval(), rate));
        anytime += u32::from(contains_rate(proportion.anytime_interval(), rate));
    }
    let share = |count: u32| f64::from(count) / f64::from(runs);
    (share(ordinary), share(anytime))
}

#[test]
fn anytime_intervals_hold_under_optional_stopping() {
    let is_soak = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let mut table = "stops\trate\tordinary\tanytime-valid\n".to_owned();
    for rule in StoppingRule::ALL {
        for rate in [0.5, 0.1, 0.01] {
            let (ordinary, anytime) = simulate(rule, rate, if is_soak { RUNS } else { FEW_RUNS });
            let _ = writeln!(table, "{rule:?}\t{rate}\t{ordinary:.4}\t{anytime:.4}");
            assert!(anytime >= CONFIDENCE, "{rule:?}, {rate}: {anytime}");
            if rule == StoppingRule::OrdinaryExcludes {
                assert!(ordinary < 0.85, "{rate}: optional stopping does not bias: {ordinary}");
            }
        }
    }
    if is_soak {
        insta::assert_snapshot!(table);
    }
}
