//! The guarded events of a program, with their values.

use litmus::{Observable, Test, ThreadId};
use solver::{Bit, BitVector, Circuit};

use crate::PredictError;
use crate::path::ThreadPath;
use crate::path::unroll::{GuardedThread, Requirements, new_read_value, to_constant, unroll_thread};
use crate::skeleton::{Event, ExecutionSemantics, FinalValueSource, Owner, Skeleton, Tags, build_skeletons};
use crate::symbolic::SymbolicValue;

/// All events of all paths.
pub(crate) struct GuardedProgram {
    pub(super) skeleton: Skeleton,
    /// The bit of each event that holds if it executes.
    pub(super) executes: Vec<Bit>,
    /// The value that each event reads.
    pub(super) read: Vec<Option<BitVector>>,
    /// The value that each event writes.
    pub(super) written: Vec<Option<BitVector>>,
    /// For each event, the reads that its written value is computed from, each with the bit under which it is.
    pub(super) sources: Vec<Vec<(usize, Bit)>>,
    /// The final value of each observable; `None` for that of the last write to a storage.
    pub(super) finals: Vec<Option<BitVector>>,
    /// Holds if every thread runs to its end.
    pub(crate) ended: Bit,
    /// Holds if the loop bound ends some thread.
    pub(crate) cut: Bit,
    pub(super) requirements: Requirements,
}

impl GuardedProgram {
    /// Executes a program on all of its paths; `None` if it is not supported here.
    ///
    /// `masks` has the bits of each storage that a read may find set.
    pub(super) fn new(
        test: &Test,
        observables: &[Observable],
        semantic: ExecutionSemantics,
        unroll: u32,
        masks: &[u64],
        circuit: &mut Circuit,
    ) -> Result<Option<GuardedProgram>, PredictError> {
        if test.khronos.is_some() || test.has_undefined_locations() || !test.system_sync.is_empty() {
            return Ok(None);
        }
        let mut requirements = Vec::new();
        let threads = (0..test.threads.len()).map(|thread| {
            let thread = ThreadId(thread as u16);
            let text = semantic.is_shipped_vulkan;
            unroll_thread(test, thread, unroll, text, masks, circuit, &mut requirements)
        });
        let Some(threads) = threads.collect::<Option<Vec<GuardedThread>>>() else { return Ok(None) };
        let paths: Vec<&ThreadPath> = threads.iter().map(|thread| &thread.path).collect();
        let mut skeletons = match build_skeletons(test, observables, &paths, semantic) {
            Err(PredictError::TooManyEvents { .. }) => return Ok(None),
            skeletons => skeletons?,
        };
        let Some(skeleton) = skeletons.pop().filter(|skeleton| skeletons.is_empty() && skeleton.terminated)
        else {
            return Ok(None);
        };
        // `masks` knows whole storages, not cells of them.
        let is_whole =
            |event: &Event| event.storage.is_none_or(|storage| usize::from(storage.0) < test.locations.len());
        if !skeleton.events.iter().all(is_whole) {
            return Ok(None);
        }
        let all_ended: Vec<Bit> = threads.iter().map(|thread| thread.ended).collect();
        let some_cut: Vec<Bit> = threads.iter().map(|thread| thread.cut).collect();
        let count = skeleton.len();
        let mut program = GuardedProgram {
            skeleton,
            executes: vec![Bit::TRUE; count],
            read: vec![None; count],
            written: vec![None; count],
            sources: vec![Vec::new(); count],
            finals: Vec::new(),
            ended: circuit.all(&all_ended),
            cut: circuit.any(&some_cut),
            requirements,
        };
        let supported = program.add_values(&threads, masks, circuit);
        let finals = observables.iter().enumerate().map(|(index, observable)| match observable {
            Observable::Register(thread, register) => {
                let thread = threads.get(usize::from(thread.0))?;
                Some(Some(thread.registers.get(usize::from(register.0))?.clone()))
            }
            Observable::Location(..) => match program.skeleton.final_values.get(index)? {
                FinalValueSource::Expression(SymbolicValue::Read(event)) => {
                    program.read.get(usize::from(*event)).cloned()
                }
                FinalValueSource::Expression(SymbolicValue::Known(value)) => Some(Some(to_constant(*value))),
                FinalValueSource::Expression(_) => None,
                FinalValueSource::LastWrite(_) => Some(None),
            },
        });
        let Some(finals) = finals.collect::<Option<Vec<_>>>() else { return Ok(None) };
        program.finals = finals;
        Ok(supported.map(|()| program))
    }

    /// Adds the guards and values of the events; `None` if an access has several events of one kind.
    fn add_values(&mut self, threads: &[GuardedThread], masks: &[u64], circuit: &mut Circuit) -> Option<()> {
        // The event that reads, for each step of each thread.
        let mut read_events: Vec<Vec<Option<usize>>> =
            threads.iter().map(|thread| vec![None; thread.steps.len()]).collect();
        let mut writes: Vec<(usize, usize, usize)> = Vec::new();
        for (number, event) in self.skeleton.events.iter().enumerate() {
            let (reads, does_write) = (event.tags.has(Tags::R), event.tags.has(Tags::W));
            match event.owner {
                Owner::Initial => {
                    self.written[number] = Some(to_constant(event.stored_value.as_ref()?.known_value()?));
                }
                Owner::Thread(thread) => {
                    let thread = usize::from(thread.0);
                    let index = usize::from(event.step?);
                    let step = threads.get(thread)?.steps.get(index)?;
                    self.executes[number] = step.guard;
                    if reads {
                        self.read[number] = Some(step.read.clone()?);
                        if read_events[thread][index].replace(number).is_some() {
                            return None;
                        }
                    }
                    if does_write {
                        self.written[number] = Some(step.written.clone()?);
                        if writes.last().is_some_and(|last| (last.1, last.2) == (thread, index)) {
                            return None;
                        }
                        writes.push((number, thread, index));
                    }
                }
                Owner::CooperativeInvocation(..) => return None,
                Owner::Final => {
                    self.executes[number] = self.ended;
                    if reads {
                        let mask = event.storage.and_then(|storage| masks.get(usize::from(storage.0)));
                        self.read[number] = Some(new_read_value(circuit, mask.copied(), u64::BITS));
                    }
                }
            }
        }
        for (event, thread, index) in writes {
            for (step, bit) in &threads[thread].steps[index].sources {
                self.sources[event].push((read_events[thread][*step]?, *bit));
            }
        }
        Some(())
    }

    /// Returns the bits that the writes of each storage may set.
    pub(super) fn stored_masks(&self, locations: usize) -> Vec<u64> {
        let mut masks = vec![0; locations];
        for (event, written) in self.skeleton.events.iter().zip(&self.written) {
            let (Some(storage), Some(written)) = (event.storage, written) else { continue };
            if let Some(mask) = masks.get_mut(usize::from(storage.0)) {
                let bits = written.bits().iter().enumerate();
                *mask |= bits
                    .filter(|(_, bit)| **bit != Bit::FALSE)
                    .fold(0, |mask, (place, _)| mask | 1_u64 << place);
            }
        }
        masks
    }

    /// Returns for each event the reads whose values may flow into its result through one write.
    pub(super) fn read_dependencies(&self) -> Vec<Vec<usize>> {
        let mut depends = vec![Vec::new(); self.skeleton.len()];
        for read in (0..self.skeleton.len()).filter(|event| self.read[*event].is_some()) {
            for write in self.skeleton.candidate_writes(read) {
                depends[read].extend(self.sources[write].iter().map(|(source, _)| *source));
            }
            depends[read].sort_unstable();
            depends[read].dedup();
        }
        depends
    }
}
