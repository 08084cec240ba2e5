//! `tune`: looks for the stress under which a device shows most of given tests, and writes it as a preset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use campaign::choice;
use campaign::kinds::litmus::plan::LitmusPlan;
use campaign::measure::{self, Relaxed, Subject, Trial};
use campaign::targets::{self, Target};
use rand::Rng;
use results::bench::Counts;
use results::statistics::Proportion;
use runner::Stress;
use runner::tune::Candidates;

use super::environments;
use crate::arguments::Tune;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, say, write_file};

/// Relaxed tests that stand for the families: what they show, their synchronized siblings could have shown.
const MUTANTS: [&str; 4] = ["sb/SB+rlx-rlx", "r/R+rlx-rlx", "mp/MP+early-read", "coherence/CoRR+alias"];
/// The same for GPUs, which reorder more than stores and later loads.
const MUTANTS_OF_GPUS: [&str; 8] = [
    "sb/SB+rlx-rlx",
    "mp/MP+rlx-rlx",
    "lb/LB+rlx-rlx",
    "s/S+rlx-rlx",
    "r/R+rlx-rlx",
    "2+2w/2+2W+rlx-rlx",
    "iriw/IRIW+rlx",
    "coherence/CoRR+rlx",
];
/// Candidates that are looked at together: a worker lives for them all.
const TOGETHER: usize = 6;
/// How many of them get a close look at most.
const PROMISING: usize = 2;
/// A first look at a candidate, for each test.
const LOOK: Duration = Duration::from_millis(60);
/// A close look.
const CLOSE_LOOK: Duration = Duration::from_millis(200);
/// Tests that have looks of that length; and the shortest look at one of more.
const USUAL: f64 = 8.0;
const LEAST_LOOK: Duration = Duration::from_millis(20);
/// The part of the time for candidates drawn at random; what is left after the comparison goes to neighbours.
const RANDOM_PART: f64 = 0.45;
/// The part of the time that ends the search: the best candidate is measured again beside the device's own preset, since
/// the best of many is partly luck.
const COMPARISON_PART: f64 = 0.15;
/// How often the two are measured in turn.
const COMPARISONS: u64 = 5;
/// How long trials may take beyond their time: for starting a worker, and for building the kernels of each.
const OVERHEAD: Duration = Duration::from_secs(3);
const BUILDING: Duration = Duration::from_millis(200);

/// A stress with what was seen under it, by test.
#[derive(Clone)]
struct Measured {
    stress: Stress,
    counts: Vec<Counts>,
}

impl Measured {
    /// The sum over the tests of ln(1 + weak a second), half as much of interleaved ones, and a tenth as much of instances:
    /// a test that shows ten times as much counts as much as any other that does, however rare its outcomes are. What is
    /// weak is what a search is for; the others lead it where there is nothing weak yet.
    fn score(&self) -> f64 {
        self.score_by(|count, _| count as f64)
    }

    /// The score if every rate were at the upper end of its interval.
    fn best_case(&self) -> f64 {
        self.score_by(|count, instances| Proportion::new(count, instances).interval().high * instances as f64)
    }

    fn score_by(&self, estimate: impl Fn(u64, u64) -> f64) -> f64 {
        let of = |counts: &Counts, count: u64| {
            let estimate = if counts.instances == 0 { 0.0 } else { estimate(count, counts.instances) };
            if counts.seconds > 0.0 { (estimate / counts.seconds).ln_1p() } else { 0.0 }
        };
        let counted =
            |counts: &Counts| [(counts.weak, 1.0), (counts.interleaved, 0.5), (counts.instances, 0.1)];
        let weighed = |counts| counted(counts).map(|(count, weight)| weight * of(counts, count));
        self.counts.iter().flat_map(weighed).sum()
    }

    /// The geometric mean over the tests of one more than their weak outcomes a second, less one.
    fn typical(&self) -> f64 {
        let logarithms = self.counts.iter().map(|counts| counts.per_second(counts.weak).ln_1p());
        (logarithms.sum::<f64>() / self.counts.len().max(1) as f64).exp_m1()
    }

    fn add(&mut self, more: &Measured) {
        for (counts, more) in self.counts.iter_mut().zip(&more.counts) {
            counts.add(more);
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When a test or the device is not there, or the preset cannot be written.
pub fn tune(arguments: &Tune, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.out.extension().is_none_or(|extension| extension != "toml") {
        return Err(Failure::input_message(format!("{}: a preset is a .toml file", arguments.out.display())));
    }
    let devices: Vec<String> = arguments.device.iter().cloned().collect();
    let mut targets = targets::targets(&devices, None, &say)?;
    targets::refuse_compile_only(&targets)?;
    targets.truncate(1);
    let seed = arguments.seed.unwrap_or_else(|| rand::rng().next_u32().into());
    let of_suite = match &arguments.suite {
        Some(suite) => environments::tests(&[], Some(suite))?,
        None => Vec::new(),
    };
    let plan = LitmusPlan::new(targets, of_suite, None, None, &|_, _| None)?;
    let Some(target) = plan.targets.first() else { return Err(Failure::environment_message("no device")) };
    let capabilities = &target.listed.capabilities;
    let mut unseen = Vec::new();
    let subjects = match arguments.tests.is_empty() {
        _ if arguments.suite.is_some() => {
            let (learnt, others) = halves(Relaxed::of_plan(&plan), seed)?;
            unseen = others;
            learnt
        }
        false => Subject::of_arguments(&arguments.tests)?,
        true if capabilities.is_cpu => Subject::of_arguments(&MUTANTS)?,
        true => Subject::of_arguments(&MUTANTS_OF_GPUS)?,
    };
    let mut first = Vec::with_capacity(arguments.from.len());
    for name in &arguments.from {
        first.push(targets::stress_for(Some(&targets::stress(name)?), &target.listed, &say)?);
    }
    let mut search = Search {
        target,
        subjects: &subjects,
        by_deaths: arguments.suite.is_some(),
        started: Instant::now(),
        time: arguments.time,
        trials: 0,
        dropped: 0,
        seed,
    };
    let (best, own) = search.go(&first, quiet)?;
    if !unseen.is_empty() {
        return search.judged(&unseen, (best, own), arguments);
    }
    let text = search.preset(&best, &own, seed)?;
    write_file(&arguments.out, text.as_bytes())?;
    let (better, before) = (best.score(), own.score());
    Data::new().print(&format!(
        "{}: score {better:.2}, {:.2} under the preset `{}`; {} candidates, {} of them dropped at the first look\n",
        arguments.out.display(),
        before,
        own.stress.name,
        search.trials,
        search.dropped
    ))?;
    Ok(Outcome::Success)
}

/// Relaxed tests in two halves that share no family: what is learnt from, and what it is judged by.
fn halves(relaxed: Vec<Relaxed>, seed: u64) -> Result<(Vec<Subject>, Vec<Subject>), Failure> {
    let mut families: BTreeMap<String, Vec<Subject>> = BTreeMap::new();
    for Relaxed { subject, .. } in relaxed {
        let family = subject.id.split('/').next().unwrap_or_default();
        families.entry(choice::hash(&format!("{seed} {family}"))).or_default().push(subject);
    }
    let (mut learnt, mut unseen) = (Vec::new(), Vec::new());
    for family in families.into_values() {
        if learnt.len() <= unseen.len() { &mut learnt } else { &mut unseen }.extend(family);
    }
    match unseen.is_empty() {
        true => Err(Failure::input_message("the suite has relaxed tests of fewer than two families")),
        false => Ok((learnt, unseen)),
    }
}

#[derive(Clone, Copy)]
struct Search<'a> {
    target: &'a Target,
    subjects: &'a [Subject],
    /// Weak outcomes that count are those that tests ask about.
    by_deaths: bool,
    started: Instant,
    time: Duration,
    /// Candidates tried, and those of them that had no close look.
    trials: u32,
    dropped: u32,
    seed: u64,
}

impl Search<'_> {
    /// The best stress found and the device's own preset, both measured side by side.
    fn go(&mut self, first: &[Stress], quiet: bool) -> Result<(Measured, Measured), Failure> {
        let own = self.target.stress.clone();
        let mut candidates = Candidates::new(self.seed, &self.target.listed.capabilities, &own);
        let mut best = self.measure(&own, CLOSE_LOOK)?;
        if best.counts.iter().all(|counts| counts.instances == 0) {
            return Err(Failure::environment_message("none of the tests runs on the device"));
        }
        if !quiet {
            say(&format!("{}: {}", own.name, self.told(&best)));
        }
        for close in self.measure_all(self.subjects, first, CLOSE_LOOK)? {
            self.trials += 1;
            if !quiet {
                say(&format!("{}: {}", close.stress.name, self.told(&close)));
            }
            if close.score() > best.score() {
                best = close;
            }
        }
        while self.spent() < 1.0 - COMPARISON_PART {
            let draw = |_| match self.spent() < RANDOM_PART {
                true => candidates.random(),
                false => candidates.neighbour(&best.stress),
            };
            let drawn: Vec<Stress> = (0..TOGETHER).map(draw).collect();
            let mut looks = self.measure_all(self.subjects, &drawn, LOOK)?;
            self.trials += TOGETHER as u32;
            looks.retain(|look| look.best_case() >= best.score());
            looks.sort_by(|left, right| right.score().total_cmp(&left.score()));
            looks.truncate(PROMISING);
            self.dropped += (TOGETHER - looks.len()) as u32;
            let promising: Vec<Stress> = looks.into_iter().map(|look| look.stress).collect();
            for close in self.measure_all(self.subjects, &promising, CLOSE_LOOK)? {
                if close.score() > best.score() {
                    best = close;
                    if !quiet {
                        say(&format!("{:3.0} %: {}", 100.0 * self.spent(), self.told(&best)));
                    }
                }
            }
        }
        let (of_best, of_own) = self.compared(self.subjects, &best.stress, &own)?;
        // Luck alone is no reason to change.
        Ok(if of_best.score() > of_own.score() { (of_best, of_own) } else { (of_own.clone(), of_own) })
    }

    /// Two stresses in turn.
    fn compared(
        &self,
        subjects: &[Subject],
        best: &Stress,
        own: &Stress,
    ) -> Result<(Measured, Measured), Failure> {
        let nothing = |stress: &Stress| Measured {
            stress: stress.clone(),
            counts: vec![Counts::default(); subjects.len()],
        };
        let (mut of_best, mut of_own) = (nothing(best), nothing(own));
        let found = best != own;
        for _ in 0..COMPARISONS {
            for measured in [&mut of_own, &mut of_best].into_iter().take(1 + usize::from(found)) {
                let stress = measured.stress.clone();
                let more = self.measure_all(subjects, std::slice::from_ref(&stress), CLOSE_LOOK)?;
                more.iter().for_each(|more| measured.add(more));
            }
        }
        Ok((if found { of_best } else { of_own.clone() }, of_own))
    }

    /// Judges the best by tests that it was not learnt from, and writes it.
    fn judged(
        &self,
        unseen: &[Subject],
        (best, own): (Measured, Measured),
        arguments: &Tune,
    ) -> Result<Outcome, Failure> {
        let (others, others_own) = self.compared(unseen, &best.stress, &own.stress)?;
        // What does not hold for others was learnt by heart.
        let holds = others.typical() >= others_own.typical();
        let (written, written_others) = if holds { (&best, &others) } else { (&own, &others_own) };
        let of = |what: &str, count: usize, best: &Measured, own: &Measured| {
            format!(
                "{count} tests {what}: typical deaths a second {:.2}, and {:.2} under the preset `{}`",
                best.typical(),
                own.typical(),
                own.stress.name
            )
        };
        let learnt = of("that it was learnt from", self.subjects.len(), &best, &own);
        let judged = of("that it did not see", unseen.len(), &others, &others_own);
        let end =
            if holds { "" } else { "; it does not hold for those, so that the preset is written unchanged" };
        let all = Search { subjects: &[self.subjects, unseen].concat(), ..*self };
        let together = |seen: &Measured, unseen: &Measured| Measured {
            stress: seen.stress.clone(),
            counts: [seen.counts.as_slice(), unseen.counts.as_slice()].concat(),
        };
        let text = all.preset(&together(written, written_others), &together(&own, &others_own), self.seed)?;
        let text = format!("# {learnt}.\n# {judged}{end}; \"weak\" below is what tests ask about.\n{text}");
        write_file(&arguments.out, text.as_bytes())?;
        Data::new().print(&format!(
            "{}: {} candidates, {} of them dropped at the first look\n{learnt}\n{judged}{end}\n",
            arguments.out.display(),
            self.trials,
            self.dropped
        ))?;
        Ok(Outcome::Success)
    }

    /// The score, and the weak outcomes a second of each test.
    fn told(&self, measured: &Measured) -> String {
        let of = |(subject, counts): (&Subject, &Counts)| {
            let name = subject.id.rsplit('/').next().unwrap_or_default();
            format!("{name} {:.0}", counts.per_second(counts.weak))
        };
        let weak: Vec<String> = self.subjects.iter().zip(&measured.counts).map(of).collect();
        format!("score {:.2}; weak a second: {}", measured.score(), weak.join(", "))
    }

    /// Which part of the time is over.
    fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }

    fn measure(&self, stress: &Stress, time: Duration) -> Result<Measured, Failure> {
        let all = self.measure_all(self.subjects, std::slice::from_ref(stress), time)?;
        let nothing =
            || Measured { stress: stress.clone(), counts: vec![Counts::default(); self.subjects.len()] };
        Ok(all.into_iter().next().unwrap_or_else(nothing))
    }

    /// How long a look at each of so many tests is: shorter where there are many.
    fn look(&self, time: Duration, tests: usize) -> Duration {
        let part = USUAL / tests.max(USUAL as usize) as f64;
        if self.by_deaths { time.mul_f64(part).max(LEAST_LOOK) } else { time }
    }

    /// All tests under each stress, one after another in a worker that lives for all of them.
    fn measure_all(
        &self,
        subjects: &[Subject],
        stresses: &[Stress],
        time: Duration,
    ) -> Result<Vec<Measured>, Failure> {
        let time = self.look(time, subjects.len());
        let trials: Vec<Trial<'_>> = stresses
            .iter()
            .flat_map(|stress| {
                subjects.iter().map(move |subject| Trial { subject, stress, time, seed: self.seed })
            })
            .collect();
        let count = u32::try_from(trials.len()).unwrap_or(u32::MAX);
        let limit = OVERHEAD + (time + BUILDING).saturating_mul(count);
        let ended = measure::run(self.target, &trials, limit)?;
        let counts = trials.iter().zip(ended).map(|(trial, seen)| match seen {
            Ok(seen) if self.by_deaths => {
                Counts { weak: trial.subject.deaths(&seen), ..trial.subject.counts(&seen) }
            }
            Ok(seen) => trial.subject.counts(&seen),
            // A candidate that breaks a run is no candidate; one whose tests are skipped shows nothing.
            Err(_) => Counts::default(),
        });
        let counts: Vec<Counts> = counts.collect();
        let measured = |(stress, counts): (&Stress, &[Counts])| Measured {
            stress: stress.clone(),
            counts: counts.to_vec(),
        };
        Ok(stresses.iter().zip(counts.chunks(subjects.len().max(1))).map(measured).collect())
    }

    /// The text of the preset, its evidence in comments.
    fn preset(&self, best: &Measured, own: &Measured, seed: u64) -> Result<String, Failure> {
        let identity = &self.target.listed.identity;
        let mut text = format!(
            "# For {} ({} {}), found by `vk-litmus tune --time {} --seed {seed}`: {} candidates.\n\
             # Millions a second under this stress, and under the preset `{}` in turn with it ({} s each):\n",
            identity.name,
            identity.driver_name,
            identity.driver_info.trim(),
            humantime::format_duration(self.time),
            self.trials,
            own.stress.name,
            COMPARISONS as f64 * CLOSE_LOOK.as_secs_f64(),
        );
        for ((subject, here), there) in self.subjects.iter().zip(&best.counts).zip(&own.counts) {
            let millions = |counts: &Counts, count| counts.per_second(count) / 1e6;
            let interval = Proportion::new(here.weak, here.instances).interval();
            text += &format!(
                "#   {}: instances {:.2} and {:.2}, interleaved {:.4} and {:.4}, weak {:.4} and {:.4} \
                 (share {:.3e} to {:.3e} with 95 %)\n",
                subject.id,
                millions(here, here.instances),
                millions(there, there.instances),
                millions(here, here.interleaved),
                millions(there, there.interleaved),
                millions(here, here.weak),
                millions(there, there.weak),
                interval.low,
                interval.high,
            );
        }
        Ok(text + &best.stress.to_toml().map_err(Failure::environment_error)?)
    }
}
