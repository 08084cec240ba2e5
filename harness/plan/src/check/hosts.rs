//! Checks of the host threads of a plan.

use crate::{BatchStart, BufferMemory, HostAct, Plan, PlanStep, Semaphore};

impl Plan {
    /// Checks that host threads run between their two steps, and that each batch follows its own step.
    pub(super) fn validate_hosts(&self) -> Result<(), String> {
        let mut inside = false;
        let mut starts = 0;
        let mut next = 0;
        for step in &self.steps {
            match step {
                PlanStep::Hosts { .. } if !inside && self.hosts.is_some() => {
                    (inside, starts) = (true, starts + 1)
                }
                PlanStep::HostsEnd { .. } if inside => inside = false,
                PlanStep::Batch { number, .. } if inside && *number == next => next += 1,
                PlanStep::Hosts { .. } | PlanStep::HostsEnd { .. } | PlanStep::Batch { .. } => {
                    return Err("a host-thread step in a plan without host threads".to_owned());
                }
                PlanStep::Dispatch { .. }
                | PlanStep::Dependency { .. }
                | PlanStep::CommandBuffer { .. }
                | PlanStep::Signal { .. }
                | PlanStep::Wait { .. }
                    if inside && next == 0 =>
                {
                    return Err("commands outside a batch in a plan with host threads".to_owned());
                }
                PlanStep::Dispatch { .. }
                | PlanStep::Dependency { .. }
                | PlanStep::CommandBuffer { .. }
                | PlanStep::Signal { .. }
                | PlanStep::Wait { .. } => {}
                _ if inside => {
                    return Err("a batch contains only dispatches, dependencies and semaphores".to_owned());
                }
                _ => {}
            }
        }
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let reached = self.buffers.get(hosts.buffer.0 as usize);
        if !reached.is_some_and(|buffer| matches!(buffer.memory, BufferMemory::Mapped(_))) {
            return Err("host threads with memory that they cannot access".to_owned());
        }
        if inside || starts != 1 || next as usize != hosts.batches.len() {
            return Err("host threads start and end once, with all their batches in between".to_owned());
        }
        let kind = |number: u32| hosts.batches.get(number as usize).copied();
        let mut submitted = vec![0; hosts.batches.len()];
        for act in hosts.threads.iter().flat_map(|thread| &thread.acts) {
            if let HostAct::Submit(number) = act
                && let Some(count) = submitted.get_mut(*number as usize)
            {
                *count += 1;
            }
            let wrong = match act {
                HostAct::Submit(number) => kind(*number) != Some(BatchStart::Submitted),
                HostAct::Wait(number) => kind(*number).is_none(),
                HostAct::Signal { semaphore, .. } | HostAct::Await { semaphore, .. } => {
                    self.semaphores.get(semaphore.0 as usize) != Some(&Semaphore::Timeline)
                }
                HostAct::Execute(_) => false,
            };
            if wrong {
                return Err("a host thread starts or awaits a batch that is not started this way".to_owned());
            }
        }
        let wanted = |start: &BatchStart| u32::from(*start == BatchStart::Submitted);
        if hosts.batches.iter().map(wanted).ne(submitted) {
            return Err("each batch is started once".to_owned());
        }
        Ok(())
    }
}
