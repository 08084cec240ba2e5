//! One concurrent submission of a run: its prepared plan, its state in flight, and the counting of its
//! results.

use std::ops::ControlFlow;
use std::time::Duration;

use plan::{Prepared, Timestamp};
use shaders::Parameters;

use super::{OnProgress, PROGRESS_INTERVAL, RunProgress, RunTally};
use crate::classify::Classifier;
use crate::contention::DispatchDecision;
use crate::count::{Counter, DispatchMemory, Unwritten, unit_index};
use crate::dispatch::{Execution, Workgroups};
use crate::error::Cause;
use crate::host_copy::{BufferPrefix, HostCopy};
use crate::memory::{FinalBuffer, ProgramPlan};
use crate::{host, processor};

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlightDispatch {
    pub(super) parameters: Parameters,
    pub(super) started_at: Timestamp,
    pub(super) submitted_at: Timestamp,
    /// Processor time of this process before the dispatch, if the device computes in this process.
    pub(super) processor_time_before: Option<Duration>,
    pub(super) decision: DispatchDecision,
}

impl InFlightDispatch {
    /// Returns the processor time of the dispatch if the device computes in this process, else the elapsed
    /// time.
    pub(super) fn processor_time(&self, took: Duration) -> Duration {
        let used = self
            .processor_time_before
            .zip(processor::used())
            .map(|(before, after)| after.saturating_sub(before));
        used.unwrap_or(took)
    }
}

/// A prepared plan with its dispatch in flight.
pub(super) struct InFlightPlan<'d> {
    pub(super) prepared: Box<dyn Prepared + 'd>,
    pub(super) layout: ProgramPlan,
    pub(super) workgroups: Workgroups,
    pub(super) in_flight: Option<InFlightDispatch>,
    pub(super) phase_parameters: Vec<Parameters>,
    /// The words that the last submission left for the host.
    pub(super) copied: HostCopy,
    /// These words were counted, and not compared with the memory since.
    pub(super) is_copy_counted: bool,
    /// The results, if those of host threads are among them or the device's memory is fetched.
    pub(super) results: Vec<u32>,
    /// The locations, including those in images.
    pub(super) locations: Vec<u32>,
}

impl InFlightPlan<'_> {
    /// Waits until a dispatch ends. Returns its duration, and a break if the callback requested the end of
    /// the run.
    pub(super) fn wait(
        &mut self,
        dispatch: InFlightDispatch,
        timeout: Duration,
        tally: &RunTally,
        on_progress: OnProgress<'_>,
    ) -> Result<(Duration, ControlFlow<()>), Cause> {
        let mut ended = ControlFlow::Continue(());
        loop {
            match self.prepared.poll(PROGRESS_INTERVAL)? {
                plan::Progress::Finished { device_time } => {
                    return Ok((device_time.unwrap_or(dispatch.submitted_at.elapsed()), ended));
                }
                plan::Progress::NotExecuted => return Err(Cause::NullDevice),
                plan::Progress::Running if dispatch.submitted_at.elapsed() >= timeout => {
                    return Err(Cause::TimedOut { after: timeout });
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
    pub(super) fn count_dispatch(
        &mut self,
        classifier: Option<&Classifier>,
        compared: bool,
        parameters: &Parameters,
        instances: usize,
        tally: &mut RunTally,
    ) -> Result<(), Cause> {
        let prepared = self.prepared.as_mut();
        let prefixes = self.layout.read_prefixes(parameters, instances, tally.counter.slots());
        self.copied.update(prepared, prefixes)?;
        let execution = match self.layout.marker.is_written(&self.copied)? {
            true => self.layout.check_execution(&self.copied, &self.phase_parameters)?,
            false => Execution::Incomplete,
        };
        if execution != Execution::AsRequested {
            // It may still run.
            prepared.drain()?;
            tally.discard(execution, instances as u64);
            return Ok(());
        }
        let repeated = self.layout.claims.count_repeated(prepared)?;
        match classifier {
            Some(classifier) => {
                self.count_device_counted(classifier, parameters, instances, compared, tally)?
            }
            None => {
                let unwritten = self.count_on_host(parameters, instances, &mut tally.counter)?;
                tally.record_dispatch(unwritten);
            }
        }
        tally.repeated += repeated;
        self.is_copy_counted = true;
        Ok(())
    }

    /// Compares the words of a counted dispatch with the memory before it is used again, at the latest time.
    pub(super) fn check_late_changes(&mut self, tally: &mut RunTally) -> Result<(), Cause> {
        if std::mem::take(&mut self.is_copy_counted) && !self.copied.is_unchanged(self.prepared.as_mut())? {
            tally.record_late_change();
        }
        Ok(())
    }

    /// Counts a dispatch whose outcomes the device counted. The host counts as well if `compared`, or if the
    /// device found unexpected rows.
    fn count_device_counted(
        &mut self,
        classifier: &Classifier,
        parameters: &Parameters,
        instances: usize,
        compared: bool,
        tally: &mut RunTally,
    ) -> Result<(), Cause> {
        let counters = self.copied.words(self.layout.counters_readback())?;
        let counters =
            match classifier.verify_receipts(counters, parameters, &|role| self.layout.counted_salt(role)) {
                Ok(counters) => counters,
                // Counters of an earlier dispatch may be mixed with those of this one.
                Err(execution) => {
                    tally.discard(execution, instances as u64);
                    return Ok(());
                }
            };
        let counted = tally.counter.decode_counters(&classifier.table, counters);
        // The host reads the memory if it compares, or if the counters do not explain every
        // instance.
        if !compared && counted.outside_table == 0 && counted.instances() == instances as u64 {
            tally.counter.add_counted(&counted, parameters.rounds.into());
            tally.record_dispatch(Unwritten::default());
            return Ok(());
        }
        // Counted separately first, so that a dispatch with a contradiction leaves no counts.
        let mut host_counts = tally.counter.clone_empty();
        let unwritten = self.count_on_host(parameters, instances, &mut host_counts)?;
        let not_executed = unwritten.instances;
        let difference = if not_executed == 0 {
            host_counts.difference_from(&counted)
        } else {
            // The host does not count this dispatch.
            // Unwritten rows hold poison, which no row of the table contains.
            let enough = counted.outside_table >= not_executed && counted.instances() == instances as u64;
            (!enough).then(|| {
                let (elsewhere, all) = (counted.outside_table, counted.instances());
                format!(
                    "{elsewhere} of {all} instances as not executed, the host {not_executed} of {instances}"
                )
            })
        };
        if let Some(difference) = difference {
            tally.discard(Execution::Incomplete, instances as u64);
            return Err(Cause::Disagreement { dispatch: tally.dispatches, difference });
        }
        tally.counter.merge(&host_counts);
        tally.record_dispatch(unwritten);
        Ok(())
    }

    /// Counts a finished dispatch.
    fn count_on_host(
        &mut self,
        parameters: &Parameters,
        instances: usize,
        counter: &mut Counter,
    ) -> Result<Unwritten, Cause> {
        let (results, locations) = self.layout.readback_buffers();
        // Images are copied for every host.
        let is_copied = self.layout.is_copied() || !self.layout.final_buffers.is_empty();
        let used = instances * parameters.stride as usize * counter.storage_words() as usize;
        let finals = || self.layout.final_buffers.iter().map(|copy| copy.buffer);
        if self.layout.is_counted() {
            // Memory that the host cannot map is fetched, as far as it was used.
            let read = counter.reads_locations().then_some(locations).into_iter().chain(finals());
            let read = read.map(|buffer| BufferPrefix { buffer, words: used });
            let results = BufferPrefix { buffer: results, words: counter.slots() * instances };
            self.copied.fetch(self.prepared.as_mut(), std::iter::once(results).chain(read))?;
        }
        let mut results = self.copied.words(results)?;
        if self.layout.plan.hosts.as_ref().map_or(0, host::count_report_slots) > 0 {
            self.results.clear();
            self.results.extend_from_slice(results);
            let reports = self.prepared.host_reports()?;
            results = host::copy_reports(&mut self.results, reports, counter.slots(), instances);
        }
        let mut words: &[u32] = &[];
        if counter.reads_locations() {
            words = self.copied.words(locations)?;
        }
        if counter.reads_locations() && !self.layout.final_buffers.is_empty() {
            self.locations.clear();
            self.locations.extend_from_slice(words);
            let unit_words = self.layout.storage_words();
            // Storages in images or in separate memory replace their units of the location buffer.
            for FinalBuffer { buffer, storages, .. } in &self.layout.final_buffers {
                let theirs = self.copied.words(*buffer)?;
                for storage in storages {
                    let units = (0..instances).map(|n| unit_index(parameters, n, *storage as usize));
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
        }
        counter.count(&DispatchMemory { parameters, instances, results, locations: words, is_copied })
    }
}
