//! One concurrent submission of a run: its prepared plan, its state in flight, and the counting of its
//! results.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::{Prepared, Timestamp};
use shaders::Parameters;

use super::{OnProgress, RunProgress, RunTally, WAIT};
use crate::classify::Classifier;
use crate::company::DispatchDecision;
use crate::count::{Counter, Dispatched, Unwritten, unit};
use crate::dispatch::{Execution, Workgroups};
use crate::error::Cause;
use crate::host;
use crate::memory::{FinalBuffer, ProgramPlan, look};
use crate::processor;

/// A dispatch in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) parameters: Parameters,
    pub(super) begun: Timestamp,
    pub(super) since: Timestamp,
    /// Processor time of this process before the dispatch, if the device computes in this process.
    pub(super) used: Option<Duration>,
    pub(super) way: DispatchDecision,
}

impl InFlight {
    /// Returns the processor time of the dispatch if the device computes in this process, else the elapsed
    /// time.
    pub(super) fn cost(&self, took: Duration) -> Duration {
        let used = self.used.zip(processor::used()).map(|(before, after)| after.saturating_sub(before));
        used.unwrap_or(took)
    }
}

/// A prepared plan with its dispatch in flight.
pub(super) struct InFlightPlan<'d> {
    pub(super) prepared: Box<dyn Prepared + 'd>,
    pub(super) layout: ProgramPlan,
    pub(super) workgroups: Workgroups,
    pub(super) in_flight: Option<InFlight>,
    /// The parameters of each phase in flight.
    pub(super) phases: Vec<Parameters>,
    /// A copy of the results, needed while locations are read.
    pub(super) results: Vec<u32>,
    /// A copy of the locations, including those in images.
    pub(super) locations: Vec<u32>,
}

impl InFlightPlan<'_> {
    /// Waits until a dispatch ends. Returns its duration, and a break if the callback requested the end of
    /// the run.
    pub(super) fn wait(
        &mut self,
        dispatch: InFlight,
        patience: Duration,
        tally: &RunTally,
        on_progress: OnProgress<'_>,
    ) -> Result<(Duration, ControlFlow<()>), Cause> {
        let mut ended = ControlFlow::Continue(());
        loop {
            match self.prepared.poll(WAIT)? {
                plan::Progress::Finished { device_time } => {
                    return Ok((device_time.unwrap_or(dispatch.since.elapsed()), ended));
                }
                plan::Progress::NotExecuted => return Err(Cause::NullDevice),
                plan::Progress::Running if dispatch.since.elapsed() >= patience => {
                    return Err(Cause::TimedOut { after: patience });
                }
                // The dispatch in flight is still awaited and counted.
                plan::Progress::Running if on_progress(&RunProgress { tally }).is_break() => {
                    ended = ControlFlow::Break(());
                }
                plan::Progress::Running => {}
            }
        }
    }

    /// Counts a finished dispatch, unless the marker or a receipt shows that it did not execute exactly once.
    pub(super) fn account(
        &mut self,
        (classifier, compared): (Option<&Classifier>, bool),
        parameters: &Parameters,
        instances: usize,
        tally: &mut RunTally,
    ) -> Result<(), Cause> {
        let prepared = self.prepared.as_mut();
        let execution = match self.layout.mark.is_written(prepared)? {
            true => self.layout.execution(prepared, &self.phases)?,
            false => Execution::Incomplete,
        };
        if execution != Execution::AsAsked {
            // It may still run.
            prepared.drain()?;
            tally.discard(execution, instances as u64);
            return Ok(());
        }
        let repeated = self.layout.claims.repeated(prepared)?;
        match classifier {
            Some(classifier) => self.count_counted(classifier, parameters, instances, compared, tally)?,
            None => {
                let unwritten = self.count(parameters, instances, &mut tally.counter)?;
                tally.note(unwritten);
            }
        }
        tally.repeated += repeated;
        Ok(())
    }

    /// Counts a dispatch whose outcomes the device counted. The host counts as well if `compared`, or if the
    /// device found unexpected rows.
    fn count_counted(
        &mut self,
        classifier: &Classifier,
        parameters: &Parameters,
        instances: usize,
        compared: bool,
        tally: &mut RunTally,
    ) -> Result<(), Cause> {
        let counters = self.prepared.read(self.layout.counters())?;
        let counters = match classifier.received(counters, parameters, &|role| self.layout.counted_salt(role))
        {
            Ok(counters) => counters,
            // Counters of an earlier dispatch may be mixed with those of this one.
            Err(execution) => {
                tally.discard(execution, instances as u64);
                return Ok(());
            }
        };
        let counted = tally.counter.counted(&classifier.table, counters);
        // The host reads the memory if it compares, or if the counters do not explain every
        // instance.
        if !compared && counted.elsewhere == 0 && counted.instances() == instances as u64 {
            tally.counter.add_counted(&counted, parameters.rounds.into());
            tally.note(Unwritten::default());
            return Ok(());
        }
        // Counted separately first, so that a dispatch with a contradiction leaves no counts.
        let mut own = tally.counter.emptied();
        let unwritten = self.count(parameters, instances, &mut own)?;
        let not_executed = unwritten.instances;
        let difference = if not_executed == 0 {
            own.differs_from(&counted)
        } else {
            // The host does not count this dispatch.
            // Unwritten rows hold poison, which no row of the table contains.
            let enough = counted.elsewhere >= not_executed && counted.instances() == instances as u64;
            (!enough).then(|| {
                let (elsewhere, all) = (counted.elsewhere, counted.instances());
                format!(
                    "{elsewhere} of {all} instances as not executed, the host {not_executed} of {instances}"
                )
            })
        };
        if let Some(difference) = difference {
            tally.discard(Execution::Incomplete, instances as u64);
            return Err(Cause::Disagreement { dispatch: tally.dispatches, difference });
        }
        tally.counter.absorb(&own);
        tally.note(unwritten);
        Ok(())
    }

    /// Counts a finished dispatch.
    fn count(
        &mut self,
        parameters: &Parameters,
        instances: usize,
        counter: &mut Counter,
    ) -> Result<Unwritten, Cause> {
        let (results, locations) = self.layout.readable();
        // Memory that the host cannot map is copied, as far as it was used.
        let (counted, copied) = (self.layout.is_counted(), self.layout.is_copied());
        let mut results = look(self.prepared.as_mut(), counted, results, counter.slots() * instances)?;
        let mut words: &[u32] = &[];
        let hosts = self.layout.plan.hosts.as_ref().map_or(0, host::slots);
        if counter.reads_locations() {
            // Reading borrows the prepared plan, so the results are copied before locations are read.
            self.results.clear();
            self.results.extend_from_slice(results);
            if hosts > 0 {
                host::with_reports(
                    &mut self.results,
                    self.prepared.host_reports()?,
                    counter.slots(),
                    instances,
                );
            }
            results = &self.results;
            let used = instances * parameters.stride as usize * counter.storage_words() as usize;
            if !self.layout.elsewhere.is_empty() {
                self.locations.clear();
                self.locations.extend_from_slice(look(self.prepared.as_mut(), counted, locations, used)?);
                let unit_words = self.layout.storage_words();
                // Storages in images or in separate memory replace their units of the location buffer.
                for FinalBuffer { buffer, storages, .. } in &self.layout.elsewhere {
                    let theirs = look(self.prepared.as_mut(), counted, *buffer, used)?;
                    for storage in storages {
                        let units = (0..instances).map(|n| unit(parameters, n, *storage as usize));
                        for start in units.map(|unit| unit * unit_words) {
                            let unit = start..start + unit_words;
                            if let (Some(words), Some(theirs)) =
                                (self.locations.get_mut(unit.clone()), theirs.get(unit))
                            {
                                words.copy_from_slice(theirs);
                            }
                        }
                    }
                }
                words = &self.locations;
            } else {
                words = look(self.prepared.as_mut(), counted, locations, used)?;
            }
        } else if hosts > 0 {
            self.results.clear();
            self.results.extend_from_slice(results);
            results = host::with_reports(
                &mut self.results,
                self.prepared.host_reports()?,
                counter.slots(),
                instances,
            );
        }
        counter.count(&Dispatched { parameters, instances, results, locations: words, copied })
    }
}
