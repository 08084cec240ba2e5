//! Explains an undecided shader: the limit that stopped the model, and the option that raises it.

use std::time::Duration;

use answers::refusal_text;
use frontend::{
    AnalysisOptions, FindingKind, ModelQuery, Problem, Refusal, SourcePosition, SpirvModule, Until,
};
use model::{Budget, Model};

use super::Checked;
use crate::patience::patience;

/// Factor for the time limit that is suggested.
const LONGER: u32 = 6;
/// A budget that shows only whether the model accepts a kernel.
const FEW_STEPS: u64 = 100;
/// Loop bounds to try, the largest first.
const BODIES: [u32; 4] = [8, 4, 2, 1];

/// Describes why the model cannot answer a query; the text follows "stays unanswered".
pub fn lacks(refusal: &Refusal) -> String {
    match (&refusal.what, refusal.place) {
        (Problem::Budget { what, .. }, _) if what.starts_with("invocations") => {
            " on a grid of this size".to_owned()
        }
        (what, SourcePosition::Line(line)) => {
            format!(": line {line}: {}", refusal_text(&what.clone().located_at(SourcePosition::Module)))
        }
        (what, _) => format!(": {}", refusal_text(&what.clone().located_at(SourcePosition::Module))),
    }
}

/// An undecided shader with the options of its check.
pub struct Undecided<'a> {
    pub module: &'a SpirvModule,
    /// The inputs and the entry point.
    pub options: &'a AnalysisOptions,
    pub model: &'a Model,
    /// The time limit that was reached.
    pub timeout: Duration,
}

impl Undecided<'_> {
    /// Returns the limit that stopped the model and the option that raises it; None if no option helps.
    pub fn words(&self, answered: Result<&Result<Checked, String>, &Refusal>) -> Option<String> {
        let (why, option) = match answered {
            Ok(Ok(Checked::Answered(line, ..))) if line.cut > 0 => {
                let why = format!("the model cut off runs after {} iterations of a loop", line.bound);
                (why, format!("`--unroll {}` continues them", 2 * line.bound))
            }
            Ok(Ok(Checked::Answered(line, ..))) => {
                let divergent = FindingKind::DivergentBarrier.name();
                if line.findings.iter().flatten().any(|found| found.kind == divergent) {
                    return None;
                }
                self.later()
            }
            Ok(Ok(_)) => return None,
            Ok(Err(why)) => (format!("the model cannot be used: {why}"), self.fewer_bodies(self.options)),
            Err(Refusal { what: Problem::OutOfTime | Problem::Orders { .. }, .. }) => self.later(),
            Err(Refusal { what: Problem::Budget { what, bound }, .. }) if what.starts_with("invocations") => {
                let why = format!("the model supports at most {bound} invocations");
                (why, self.fewer_invocations(*bound))
            }
            Err(Refusal { what: Problem::Budget { what, bound }, place }) => {
                let place = match place {
                    SourcePosition::Line(line) => format!(" at line {line}"),
                    SourcePosition::Word(_) | SourcePosition::Module => String::new(),
                };
                (format!("the model supports at most {bound} {what}{place}"), self.fewer_bodies(self.options))
            }
            Err(Refusal { what, place }) => {
                let at = match place {
                    SourcePosition::Line(line) => format!("line {line}: "),
                    SourcePosition::Word(_) | SourcePosition::Module => String::new(),
                };
                let why = refusal_text(&what.clone().located_at(SourcePosition::Module));
                return Some(format!("unknown: the model cannot be used: {at}{why}"));
            }
        };
        Some(format!("unknown: {why}; {option}"))
    }

    /// Describes the limit that stopped the interpreter.
    pub fn walk(&self, refusal: &Refusal) -> String {
        match &refusal.what {
            Problem::Budget { bound, .. } => {
                format!("unknown: the execution of the whole grid does not end within {bound} steps")
            }
            _ => {
                let (why, option) = self.later();
                format!("unknown: {why}; {option}")
            }
        }
    }

    /// Returns the texts for a reached time limit.
    fn later(&self) -> (String, String) {
        let seconds = (self.timeout * LONGER).as_secs().max(1);
        (
            "the time limit of the model was reached".to_owned(),
            format!("`--timeout {seconds}s` gives it more time"),
        )
    }

    /// Suggests the largest loop bound with which the model accepts the kernel.
    fn fewer_bodies(&self, options: &AnalysisOptions) -> String {
        let stop = || false;
        let until = Some(Until::new(patience(self.timeout / 2)));
        let taken = |bodies: &&u32| {
            let options =
                AnalysisOptions { unroll: Some(**bodies), deadline: until.clone(), ..options.clone() };
            let Ok(lifted) = frontend::lift(self.module, &options) else { return false };
            let budget = Budget::until(&stop).with_step_limit(FEW_STEPS);
            let asking = ModelQuery { budget, race: true, question: true, places: false };
            frontend::answer_with_model(&lifted, self.model, &asking).is_ok()
        };
        let below = |bodies: &&u32| options.unroll.is_none_or(|bound| **bodies < bound);
        match BODIES.iter().filter(below).find(taken) {
            Some(1) => "`--unroll 1` analyzes the first iteration of each loop".to_owned(),
            Some(bodies) => {
                format!("`--unroll {bodies}` analyzes the first {bodies} iterations of each loop")
            }
            None => "a smaller `--grid`, or smaller constants in the shader, make it applicable".to_owned(),
        }
    }

    /// Suggests the largest grid that the model accepts.
    fn fewer_invocations(&self, bound: usize) -> String {
        let until = Some(Until::new(patience(self.timeout)));
        let options = AnalysisOptions { grid: Some([1, 1, 1]), deadline: until, ..self.options.clone() };
        match frontend::lift(self.module, &options) {
            Err(Refusal { what: Problem::Budget { what, .. }, .. }) if what.starts_with("invocations") => {
                "one workgroup alone exceeds the limit: reduce its size with `--spec` if specialization \
                 constants set it"
                    .to_owned()
            }
            Ok(lifted) if !lifted.invocations.is_empty() => {
                format!("`--grid {}` has this number", (bound / lifted.invocations.len()).max(1))
            }
            _ => format!("with `--grid 1` {}", self.fewer_bodies(&options)),
        }
    }
}
