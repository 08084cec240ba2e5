//! State graph of a machine, and the infinite runs in it that satisfy a progress model.
//!
//! The search decomposes the graph into strongly connected components (Tarjan 1972). It removes states and
//! edges that no fair run can visit for ever, and repeats until a component satisfies every guarantee. Strong
//! fairness makes this the emptiness check of Streett automata.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::guarantee::{ProgressModel, ProgressSemantics, ThreadStatus, ThreadTree};
use super::machine::{MachineState, MemoryState, ProgressMachine};
use super::{Fairness, ProgressError, ProgressLimits};
use solver::BudgetTracker;

/// A step of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) thread: u16,
    pub(super) instruction: u16,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// The accessed storage, and true if the access is not to its newest write.
    accessed: Option<(u16, bool)>,
}

/// All reachable states and steps.
pub(super) struct StateGraph {
    pub(super) edges: Vec<Transition>,
    /// First edge of each state; one more entry than states.
    first_edges: Vec<u32>,
    /// The edge by which each state was found first.
    discovery_edges: Vec<Option<u32>>,
    threads: usize,
    thread_statuses: Vec<ThreadStatus>,
    program_counters: Vec<u16>,
    /// A deadlock: no thread can take a step, but not all have ended.
    pub(super) deadlock: Option<u32>,
    /// A bound of the memory has removed behaviour.
    pub(super) is_truncated: bool,
}

/// A part of the graph that a run may stay in for ever.
pub(super) struct FairComponent {
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
        let tracker = BudgetTracker::new(limits.budget);
        let threads = machine.code.threads.len();
        let mut graph = StateGraph {
            edges: Vec::new(),
            first_edges: Vec::new(),
            discovery_edges: Vec::new(),
            threads,
            thread_statuses: Vec::new(),
            program_counters: Vec::new(),
            deadlock: None,
            is_truncated: false,
        };
        let initial = machine.initial_state(memory)?;
        let mut state_ids: HashMap<MachineState<M>, u32> = HashMap::from([(initial.clone(), 0)]);
        let mut queue = std::collections::VecDeque::from([initial]);
        graph.discovery_edges.push(None);
        let mut current = 0_u32;
        // Breadth first, so that `discovery_edges` yields shortest paths and lower numbers are nearer.
        while let Some(state) = queue.pop_front() {
            graph.first_edges.push(graph.edges.len() as u32);
            graph.is_truncated |= state.memory.is_truncated();
            for thread in 0..threads {
                graph.thread_statuses.push(machine.thread_status(&state, thread));
                graph.program_counters.push(machine.program_counter(&state, thread) as u16);
            }
            let steps = machine.enabled_steps(&state)?;
            // Some thread has not ended, and none can take a step: a deadlock.
            if steps.is_empty() && !(0..threads).all(|thread| machine.has_ended(&state, thread)) {
                graph.deadlock = graph.deadlock.or(Some(current));
            }
            for step in steps {
                let next = state_ids.len() as u32;
                let to = *state_ids.entry(step.state).or_insert_with_key(|state| {
                    queue.push_back(state.clone());
                    next
                });
                if to == next {
                    graph.discovery_edges.push(Some(graph.edges.len() as u32));
                }
                graph.edges.push(Transition {
                    from: current,
                    to,
                    thread: step.thread as u16,
                    instruction: step.instruction as u16,
                    read: step.read,
                    written: step.written,
                    accessed: step.accessed.map(|(storage, is_stale)| (storage as u16, is_stale)),
                });
            }
            if state_ids.len() > limits.max_states {
                return Err(ProgressError::TooManyStates { bound: limits.max_states });
            }
            if tracker.spend(1) {
                return Err(ProgressError::OutOfTime);
            }
            current += 1;
        }
        graph.first_edges.push(graph.edges.len() as u32);
        Ok(graph)
    }

    pub(super) fn state_count(&self) -> usize {
        self.discovery_edges.len()
    }

    pub(super) fn thread_statuses(&self, state: u32) -> &[ThreadStatus] {
        let from = state as usize * self.threads;
        &self.thread_statuses[from..from + self.threads]
    }

    /// Returns the program counter of each thread in a state.
    pub(super) fn program_counters(&self, state: u32) -> &[u16] {
        let from = state as usize * self.threads;
        &self.program_counters[from..from + self.threads]
    }

    /// The steps by which a state was found first: a shortest path.
    pub(super) fn path_to(&self, mut state: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while let Some(edge) = self.discovery_edges[state as usize] {
            path.push(edge);
            state = self.edges[edge as usize].from;
        }
        path.reverse();
        path
    }

    fn edges_of(&self, state: u32) -> std::ops::Range<u32> {
        self.first_edges[state as usize]..self.first_edges[state as usize + 1]
    }

    /// Finds a component in which some infinite run satisfies every guarantee.
    pub(super) fn find_fair_component(
        &self,
        threads: &ThreadTree,
        model: &ProgressModel,
        semantics: ProgressSemantics,
        fairness: Fairness,
    ) -> Option<FairComponent> {
        // Emptiness check by refinement: a component that fails is restricted to the part that a
        // fair run may repeat, and decomposed again.
        let whole_graph =
            Subgraph { states: vec![true; self.state_count()], edges: vec![true; self.edges.len()] };
        let mut worklist = vec![whole_graph];
        while let Some(allowed) = worklist.pop() {
            let components = self.strongly_connected_components(&allowed);
            let mut component_of = vec![u32::MAX; self.state_count()];
            for (number, states) in components.iter().enumerate() {
                for state in states {
                    component_of[*state as usize] = number as u32;
                }
            }
            for (number, states) in components.into_iter().enumerate() {
                let is_inside = |edge: &Transition| component_of[edge.to as usize] == number as u32;
                let edges: Vec<u32> = states
                    .iter()
                    .flat_map(|state| self.edges_of(*state))
                    .filter(|edge| allowed.edges[*edge as usize] && is_inside(&self.edges[*edge as usize]))
                    .collect();
                // A single state without a step to itself hosts no infinite run.
                if edges.is_empty() {
                    continue;
                }
                let stale = self.stale_accesses(&edges);
                // Without these steps the component may split, so the rest is decomposed
                // again.
                if !stale.is_empty() {
                    worklist.push(
                        self.subgraph_of(&states, edges.into_iter().filter(|edge| !stale.contains(edge))),
                    );
                    continue;
                }
                // Every subset takes fewer steps and violates the same guarantee, so nothing is
                // left to refine.
                if !self.satisfies_guarantees(&states, &edges, threads, model, semantics) {
                    continue;
                }
                if fairness == Fairness::Strong {
                    // A run that visits such a state infinitely often would have to take the exit.
                    // A fair run inside the component avoids these states.
                    let leaving = self.states_with_required_exits(&states, is_inside, threads, model);
                    if !leaving.is_empty() {
                        let staying: Vec<u32> =
                            states.into_iter().filter(|state| !leaving.contains(state)).collect();
                        worklist.push(self.subgraph_of(&staying, edges.into_iter()));
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
        let mut subgraph =
            Subgraph { states: vec![false; self.state_count()], edges: vec![false; self.edges.len()] };
        for state in states {
            subgraph.states[*state as usize] = true;
        }
        for edge in edges {
            subgraph.edges[edge as usize] = true;
        }
        subgraph
    }

    /// Returns true if staying in a component for ever satisfies every guarantee. More steps never violate one, so the
    /// whole component is judged.
    fn satisfies_guarantees(
        &self,
        states: &[u32],
        edges: &[u32],
        threads: &ThreadTree,
        model: &ProgressModel,
        semantics: ProgressSemantics,
    ) -> bool {
        let mut steps = vec![false; self.threads];
        for edge in edges {
            steps[usize::from(self.edges[*edge as usize].thread)] = true;
        }
        // A thread without a step in this component has the same status in all its states.
        let statuses = self.thread_statuses(states[0]);
        let status = |thread: usize| ThreadStatus {
            ended: statuses[thread].ended,
            started: statuses[thread].started || steps[thread],
            schedulable: statuses[thread].schedulable || steps[thread],
        };
        threads.satisfies_guarantees(model, semantics, &status, &|thread| steps[thread])
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
    fn states_with_required_exits(
        &self,
        states: &[u32],
        is_inside: impl Fn(&Transition) -> bool,
        threads: &ThreadTree,
        model: &ProgressModel,
    ) -> Vec<u32> {
        let mut obligated = Vec::new();
        states
            .iter()
            .copied()
            .filter(|state| {
                obligated.clear();
                let statuses = self.thread_statuses(*state);
                threads.collect_obligations(model, &|thread| statuses[thread], &mut obligated);
                self.edges_of(*state).any(|edge| {
                    let edge = &self.edges[edge as usize];
                    !is_inside(edge) && obligated.contains(&usize::from(edge.thread))
                })
            })
            .collect()
    }

    /// Strongly connected components of the allowed steps, by Tarjan's algorithm without recursion.
    fn strongly_connected_components(&self, allowed: &Subgraph) -> Vec<Vec<u32>> {
        const UNVISITED: u32 = u32::MAX;
        let count = self.state_count();
        let (mut index, mut low) = (vec![UNVISITED; count], vec![0_u32; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut found) = (Vec::new(), Vec::new());
        let mut next = 0;
        // An explicit call stack: a state and its next edge. Recursion would overflow on long
        // chains of states.
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..count as u32 {
            if index[root as usize] != UNVISITED || !allowed.states[root as usize] {
                continue;
            }
            calls.push((root, self.first_edges[root as usize]));
            while let Some((state, edge)) = calls.last_mut() {
                let state_index = *state as usize;
                if index[state_index] == UNVISITED {
                    (index[state_index], low[state_index]) = (next, next);
                    next += 1;
                    stack.push(*state);
                    on_stack[state_index] = true;
                }
                if *edge < self.first_edges[state_index + 1] {
                    let current = *edge as usize;
                    *edge += 1;
                    let to = self.edges[current].to;
                    if !allowed.edges[current] || !allowed.states[to as usize] {
                        continue;
                    }
                    if index[to as usize] == UNVISITED {
                        calls.push((to, self.first_edges[to as usize]));
                    // A state that is off the stack belongs to a finished component, which cannot
                    // reach this one.
                    } else if on_stack[to as usize] {
                        low[state_index] = low[state_index].min(index[to as usize]);
                    }
                    continue;
                }
                let state = *state;
                calls.pop();
                if let Some((parent, _)) = calls.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[state_index]);
                }
                if low[state_index] == index[state_index] {
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
    pub(super) fn find_cycle(&self, component: &FairComponent, from: u32) -> Vec<u32> {
        let mut movers: Vec<u16> =
            component.edges.iter().map(|edge| self.edges[*edge as usize].thread).collect();
        movers.sort_unstable();
        movers.dedup();
        let mut cycle: Vec<u32> = Vec::new();
        let mut current = from;
        // The cycle must show a step of every thread that moves, otherwise the schedule would look
        // unfair.
        for mover in movers {
            if cycle.iter().any(|edge| self.edges[*edge as usize].thread == mover) {
                continue;
            }
            let path = self.find_path(component, current, |edge| edge.thread == mover);
            current = path.last().map_or(current, |edge| self.edges[*edge as usize].to);
            cycle.extend(path);
        }
        if current != from {
            cycle.extend(self.find_path(component, current, |edge| edge.to == from));
        }
        cycle
    }

    /// Returns a shortest path within the component whose last step satisfies `is_goal`.
    fn find_path(
        &self,
        component: &FairComponent,
        from: u32,
        is_goal: impl Fn(&Transition) -> bool,
    ) -> Vec<u32> {
        let mut outgoing: HashMap<u32, Vec<u32>> = HashMap::new();
        for edge in &component.edges {
            outgoing.entry(self.edges[*edge as usize].from).or_default().push(*edge);
        }
        let mut discovery_edges: HashMap<u32, Option<u32>> = HashMap::from([(from, None)]);
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            for number in outgoing.get(&state).into_iter().flatten() {
                let edge = &self.edges[*number as usize];
                if is_goal(edge) {
                    let mut path = vec![*number];
                    let mut current = state;
                    while let Some(Some(discovery)) = discovery_edges.get(&current) {
                        path.push(*discovery);
                        current = self.edges[*discovery as usize].from;
                    }
                    path.reverse();
                    return path;
                }
                if let Entry::Vacant(vacant) = discovery_edges.entry(edge.to) {
                    vacant.insert(Some(*number));
                    queue.push_back(edge.to);
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
