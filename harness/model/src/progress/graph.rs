//! State graph of a machine, and the infinite runs in it that satisfy a progress model.
//!
//! The search decomposes the graph into strongly connected components (Tarjan 1972). It removes states and
//! edges that no fair run can visit for ever, and repeats until a component satisfies every guarantee. Strong
//! fairness makes this the emptiness check of Streett automata.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::machine::{MachineState, MemoryState, ProgressMachine};
use super::promise::{ProgressModel, ProgressSemantics, ThreadStatus, ThreadTree};
use super::{Fairness, ProgressError, ProgressLimits};
use crate::budget::BudgetTracker;

/// A step of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) thread: u16,
    pub(super) at: u16,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// The accessed storage, and true if the access is not to its newest write.
    accessed: Option<(u16, bool)>,
}

/// All reachable states and steps.
pub(super) struct StateGraph {
    pub(super) edges: Vec<Transition>,
    /// First edge of each state; one more entry than states.
    first: Vec<u32>,
    /// The edge by which each state was found first.
    found_by: Vec<Option<u32>>,
    threads: usize,
    thread_statuses: Vec<ThreadStatus>,
    program_counters: Vec<u16>,
    /// A deadlock: no thread can take a step, but not all have ended.
    pub(super) stuck: Option<u32>,
    /// A bound of the memory has removed behaviour.
    pub(super) cut: bool,
}

/// A part of the graph that a run may stay in for ever.
pub(super) struct FairComponent {
    /// Its states.
    pub(super) states: Vec<u32>,
    /// The steps that it may take.
    pub(super) edges: Vec<u32>,
}

impl StateGraph {
    /// Explores everything that is reachable.
    pub(super) fn explore_states<M: MemoryState>(
        machine: &ProgressMachine<'_>,
        memory: M,
        limits: &ProgressLimits,
    ) -> Result<StateGraph, ProgressError> {
        let purse = BudgetTracker::new(limits.budget);
        let threads = machine.code.threads.len();
        let mut graph = StateGraph {
            edges: Vec::new(),
            first: Vec::new(),
            found_by: Vec::new(),
            threads,
            thread_statuses: Vec::new(),
            program_counters: Vec::new(),
            stuck: None,
            cut: false,
        };
        let initial = machine.initial_state(memory)?;
        let mut numbers: HashMap<MachineState<M>, u32> = HashMap::from([(initial.clone(), 0)]);
        let mut open = std::collections::VecDeque::from([initial]);
        graph.found_by.push(None);
        let mut current = 0_u32;
        // Breadth first, so that `found_by` yields shortest paths and lower numbers are nearer.
        while let Some(state) = open.pop_front() {
            graph.first.push(graph.edges.len() as u32);
            graph.cut |= state.memory.is_truncated();
            for thread in 0..threads {
                graph.thread_statuses.push(machine.thread_status(&state, thread));
                graph.program_counters.push(machine.program_counter(&state, thread) as u16);
            }
            let moves = machine.enabled_steps(&state)?;
            // Some thread has not ended, and none can take a step: a deadlock.
            if moves.is_empty() && !(0..threads).all(|thread| machine.has_ended(&state, thread)) {
                graph.stuck = graph.stuck.or(Some(current));
            }
            for step in moves {
                let next = numbers.len() as u32;
                let to = *numbers.entry(step.state).or_insert_with_key(|state| {
                    open.push_back(state.clone());
                    next
                });
                if to == next {
                    graph.found_by.push(Some(graph.edges.len() as u32));
                }
                graph.edges.push(Transition {
                    from: current,
                    to,
                    thread: step.thread as u16,
                    at: step.at as u16,
                    read: step.read,
                    written: step.written,
                    accessed: step.accessed.map(|(storage, behind)| (storage as u16, behind)),
                });
            }
            if numbers.len() > limits.states {
                return Err(ProgressError::TooManyStates { bound: limits.states });
            }
            if purse.spend(1) {
                return Err(ProgressError::OutOfTime);
            }
            current += 1;
        }
        graph.first.push(graph.edges.len() as u32);
        Ok(graph)
    }

    /// Returns the number of states.
    pub(super) fn state_count(&self) -> usize {
        self.found_by.len()
    }

    /// Returns the status of each thread in a state.
    pub(super) fn standings(&self, state: u32) -> &[ThreadStatus] {
        let from = state as usize * self.threads;
        &self.thread_statuses[from..from + self.threads]
    }

    /// Returns the program counter of each thread in a state.
    pub(super) fn places(&self, state: u32) -> &[u16] {
        let from = state as usize * self.threads;
        &self.program_counters[from..from + self.threads]
    }

    /// The steps by which a state was found first: a shortest path.
    pub(super) fn path_to(&self, mut state: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while let Some(edge) = self.found_by[state as usize] {
            path.push(edge);
            state = self.edges[edge as usize].from;
        }
        path.reverse();
        path
    }

    fn edges_of(&self, state: u32) -> std::ops::Range<u32> {
        self.first[state as usize]..self.first[state as usize + 1]
    }

    /// Finds a component in which some infinite run satisfies every guarantee.
    pub(super) fn find_fair_component(
        &self,
        threads: &ThreadTree,
        model: &ProgressModel,
        definition: ProgressSemantics,
        fairness: Fairness,
    ) -> Option<FairComponent> {
        // Emptiness check by refinement: a component that fails is restricted to the part that a
        // fair run may repeat, and decomposed again.
        let everything =
            Subgraph { states: vec![true; self.state_count()], edges: vec![true; self.edges.len()] };
        let mut open = vec![everything];
        while let Some(allowed) = open.pop() {
            let components = self.strongly_connected_components(&allowed);
            let mut component_of = vec![u32::MAX; self.state_count()];
            for (number, states) in components.iter().enumerate() {
                for state in states {
                    component_of[*state as usize] = number as u32;
                }
            }
            for (number, states) in components.into_iter().enumerate() {
                let inside = |edge: &Transition| component_of[edge.to as usize] == number as u32;
                let edges: Vec<u32> = states
                    .iter()
                    .flat_map(|state| self.edges_of(*state))
                    .filter(|edge| allowed.edges[*edge as usize] && inside(&self.edges[*edge as usize]))
                    .collect();
                // A single state without a step to itself hosts no infinite run.
                if edges.is_empty() {
                    continue;
                }
                let late = self.stale_accesses(&edges);
                // Without these steps the component may split, so the rest is decomposed
                // again.
                if !late.is_empty() {
                    open.push(
                        self.subgraph_of(&states, edges.into_iter().filter(|edge| !late.contains(edge))),
                    );
                    continue;
                }
                // Every subset takes fewer steps and violates the same guarantee, so nothing is
                // left to refine.
                if !self.keeps_guarantees(&states, &edges, threads, model, definition) {
                    continue;
                }
                if fairness == Fairness::Strong {
                    // A run that visits such a state infinitely often would have to take the exit.
                    // A fair run inside the component avoids these states.
                    let leaving = self.states_with_owed_exits(&states, inside, threads, model);
                    if !leaving.is_empty() {
                        let staying: Vec<u32> =
                            states.into_iter().filter(|state| !leaving.contains(state)).collect();
                        open.push(self.subgraph_of(&staying, edges.into_iter()));
                        continue;
                    }
                }
                return Some(FairComponent { states, edges });
            }
        }
        None
    }

    /// Returns the subgraph for the next iteration of the search.
    fn subgraph_of(&self, states: &[u32], edges: impl Iterator<Item = u32>) -> Subgraph {
        let mut part =
            Subgraph { states: vec![false; self.state_count()], edges: vec![false; self.edges.len()] };
        for state in states {
            part.states[*state as usize] = true;
        }
        for edge in edges {
            part.edges[edge as usize] = true;
        }
        part
    }

    /// Returns true if staying in a component for ever satisfies every guarantee. More steps never violate one, so the
    /// whole component is judged.
    fn keeps_guarantees(
        &self,
        states: &[u32],
        edges: &[u32],
        threads: &ThreadTree,
        model: &ProgressModel,
        definition: ProgressSemantics,
    ) -> bool {
        let mut steps = vec![false; self.threads];
        for edge in edges {
            steps[usize::from(self.edges[*edge as usize].thread)] = true;
        }
        // A thread without a step in this component has the same status in all its states.
        let standings = self.standings(states[0]);
        let standing = |thread: usize| ThreadStatus {
            ended: standings[thread].ended,
            started: standings[thread].started || steps[thread],
            schedulable: standings[thread].schedulable || steps[thread],
        };
        threads.keeps_guarantees(model, definition, &standing, &|thread| steps[thread])
    }

    /// Returns the stale accesses of threads that never access the newest write in this component.
    ///
    /// No run repeats them for ever, since writes become visible eventually.
    fn stale_accesses(&self, edges: &[u32]) -> Vec<u32> {
        let key = |edge: &Transition| {
            let (storage, behind) = edge.accessed?;
            Some(((edge.thread, storage, edge.read.is_some()), behind))
        };
        let newest: Vec<_> = edges
            .iter()
            .filter_map(|edge| key(&self.edges[*edge as usize]))
            .filter(|(_, behind)| !behind)
            .map(|(key, _)| key)
            .collect();
        edges
            .iter()
            .copied()
            .filter(|edge| {
                key(&self.edges[*edge as usize]).is_some_and(|(key, behind)| behind && !newest.contains(&key))
            })
            .collect()
    }

    /// Returns the states that a thread with an obligation can leave the component from.
    fn states_with_owed_exits(
        &self,
        states: &[u32],
        inside: impl Fn(&Transition) -> bool,
        threads: &ThreadTree,
        model: &ProgressModel,
    ) -> Vec<u32> {
        let mut owed = Vec::new();
        states
            .iter()
            .copied()
            .filter(|state| {
                owed.clear();
                let standings = self.standings(*state);
                threads.collect_obligations(model, &|thread| standings[thread], &mut owed);
                self.edges_of(*state).any(|edge| {
                    let edge = &self.edges[edge as usize];
                    !inside(edge) && owed.contains(&usize::from(edge.thread))
                })
            })
            .collect()
    }

    /// Strongly connected components of the allowed steps, by Tarjan's algorithm without recursion.
    fn strongly_connected_components(&self, allowed: &Subgraph) -> Vec<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        let count = self.state_count();
        let (mut index, mut low) = (vec![NEW; count], vec![0_u32; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut found) = (Vec::new(), Vec::new());
        let mut next = 0;
        // An explicit call stack: a state and its next edge. Recursion would overflow on long
        // chains of states.
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..count as u32 {
            if index[root as usize] != NEW || !allowed.states[root as usize] {
                continue;
            }
            calls.push((root, self.first[root as usize]));
            while let Some((state, edge)) = calls.last_mut() {
                let here = *state as usize;
                if index[here] == NEW {
                    (index[here], low[here]) = (next, next);
                    next += 1;
                    stack.push(*state);
                    on_stack[here] = true;
                }
                if *edge < self.first[here + 1] {
                    let current = *edge as usize;
                    *edge += 1;
                    let to = self.edges[current].to;
                    if !allowed.edges[current] || !allowed.states[to as usize] {
                        continue;
                    }
                    if index[to as usize] == NEW {
                        calls.push((to, self.first[to as usize]));
                    // A state that is off the stack belongs to a finished component, which cannot
                    // reach this one.
                    } else if on_stack[to as usize] {
                        low[here] = low[here].min(index[to as usize]);
                    }
                    continue;
                }
                let state = *state;
                calls.pop();
                if let Some((parent, _)) = calls.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[here]);
                }
                if low[here] == index[here] {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member as usize] = false;
                        component.push(member);
                        if member == state {
                            break;
                        }
                    }
                    // Ascending numbers: the first state of a component is the nearest to the
                    // start.
                    component.sort_unstable();
                    found.push(component);
                }
            }
        }
        found
    }

    /// Steps that lead from `from` through every thread that moves in the trap, and back.
    pub(super) fn find_cycle(&self, trap: &FairComponent, from: u32) -> Vec<u32> {
        let mut movers: Vec<u16> = trap.edges.iter().map(|edge| self.edges[*edge as usize].thread).collect();
        movers.sort_unstable();
        movers.dedup();
        let mut round: Vec<u32> = Vec::new();
        let mut here = from;
        // The cycle must show a step of every thread that moves, otherwise the schedule would look
        // unfair.
        for mover in movers {
            if round.iter().any(|edge| self.edges[*edge as usize].thread == mover) {
                continue;
            }
            let way = self.find_path(trap, here, |edge| edge.thread == mover);
            here = way.last().map_or(here, |edge| self.edges[*edge as usize].to);
            round.extend(way);
        }
        if here != from {
            round.extend(self.find_path(trap, here, |edge| edge.to == from));
        }
        round
    }

    /// Returns a shortest path within the component whose last step is `wanted`.
    fn find_path(&self, trap: &FairComponent, from: u32, wanted: impl Fn(&Transition) -> bool) -> Vec<u32> {
        let mut outgoing: HashMap<u32, Vec<u32>> = HashMap::new();
        for edge in &trap.edges {
            outgoing.entry(self.edges[*edge as usize].from).or_default().push(*edge);
        }
        let mut found_by: HashMap<u32, Option<u32>> = HashMap::from([(from, None)]);
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(state) = open.pop_front() {
            for number in outgoing.get(&state).into_iter().flatten() {
                let edge = &self.edges[*number as usize];
                if wanted(edge) {
                    let mut way = vec![*number];
                    let mut at = state;
                    while let Some(Some(back)) = found_by.get(&at) {
                        way.push(*back);
                        at = self.edges[*back as usize].from;
                    }
                    way.reverse();
                    return way;
                }
                if let Entry::Vacant(vacant) = found_by.entry(edge.to) {
                    vacant.insert(Some(*number));
                    open.push_back(edge.to);
                }
            }
        }
        Vec::new()
    }
}

/// Part of a graph.
struct Subgraph {
    states: Vec<bool>,
    edges: Vec<bool>,
}
