//! The control-flow graph of an entry point with its calls inlined, its dominators and its loops.
//!
//! Blocks are cut after calls, and before and after control barriers, so a barrier is a node. Loops are the natural loops
//! of back edges. A graph with an edge into the middle of a loop is irreducible and refused.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;
use spirv_reader::{SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation};

use crate::refusal::{Unproved, UnprovedReason};

/// Upper bound on the nodes of a graph.
const MAX_NODES: usize = 6_000;
/// Upper bound on the nesting of calls.
const MAX_FRAMES: usize = 400;

/// An inlined call of a function; frame 0 is the entry point.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'m> {
    pub function: &'m SpirvFunction,
    /// The calling frame and the arguments there.
    pub caller: Option<(usize, &'m [u32])>,
}

/// A function to add, with the calling frame, the arguments and the node of the call.
type PendingCall<'m> = (u32, Option<(usize, &'m [u32], usize)>);

/// The end of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeEnd {
    /// The last instruction is a branch.
    Branch,
    /// A call, whose frame begins at the successor.
    Enter { frame: usize },
    /// A return to the successor, with the id of the value.
    Leave { value: Option<u32> },
    /// Continues with the next node.
    Next,
    /// The end of the invocation.
    Exit,
    /// The end of a path that no invocation takes.
    Unreachable,
}

/// A sequence of instructions without control flow.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub frame: usize,
    /// The label of the block.
    pub label: u32,
    /// Positions in the code of the function.
    pub code: Range<usize>,
    pub end: NodeEnd,
    pub successors: Vec<usize>,
    /// For the node after a call, the frame that was called and the id of its result.
    pub returned: Option<(usize, u32)>,
}

/// A natural loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub header: usize,
    pub body: BTreeSet<usize>,
    pub parent: Option<usize>,
}

/// The graph; node 0 is the entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph<'m> {
    pub frames: Vec<Frame<'m>>,
    pub nodes: Vec<Node>,
    pub predecessors: Vec<Vec<usize>>,
    /// Reachable nodes in reverse postorder.
    pub order: Vec<usize>,
    position: Vec<usize>,
    dominators: Vec<Option<usize>>,
    pub loops: Vec<Loop>,
    /// The innermost loop of each node.
    pub loop_of: Vec<Option<usize>>,
}

impl<'m> Graph<'m> {
    pub fn new(module: &'m SpirvModule, entry: u32) -> Result<Graph<'m>, Unproved> {
        let mut graph = Graph::default();
        let mut frames = vec![(entry, None)];
        graph.add_frame(module, &mut frames)?;
        graph.connect()?;
        Ok(graph)
    }

    /// Returns the instructions of a node.
    pub fn code(&self, node: usize) -> &'m [SpirvInstruction] {
        let Node { frame, code, .. } = &self.nodes[node];
        self.frames[*frame].function.code.get(code.clone()).unwrap_or_default()
    }

    /// Returns the loops around a node, the outermost first.
    pub fn loops_around(&self, node: usize) -> Vec<usize> {
        let mut all: Vec<usize> =
            std::iter::successors(self.loop_of[node], |inner| self.loops[*inner].parent).collect();
        all.reverse();
        all
    }

    pub fn dominates(&self, a: usize, b: usize) -> bool {
        std::iter::successors(Some(b), |node| self.dominators[*node]).any(|node| node == a)
    }

    /// Returns true if each invocation at `from` comes to `to` in the same iteration of the loops around `to`.
    ///
    /// Loops on the way are assumed to end.
    pub fn always_leads_to(&self, from: usize, to: usize) -> bool {
        let mut loops = self.loops_around(to);
        if loops.last().is_some_and(|inner| self.loops[*inner].header == to) {
            loops.pop();
        }
        let within = loops.last().map(|inner| &self.loops[*inner]);
        let (mut open, mut visited) = (vec![from], BTreeSet::from([from, to]));
        while let Some(node) = open.pop() {
            if self.nodes[node].end == NodeEnd::Exit {
                return false;
            }
            for target in &self.nodes[node].successors {
                match within {
                    Some(within) if *target == within.header || !within.body.contains(target) => {
                        return false;
                    }
                    _ if self.is_back_edge(node, *target) => {}
                    _ if visited.insert(*target) => open.push(*target),
                    _ => {}
                }
            }
        }
        true
    }

    /// Returns true if a node can be executed after another one in the same iteration of the loops around both.
    pub fn comes_before(&self, from: usize, to: usize) -> bool {
        let (mut open, mut visited) = (vec![from], BTreeSet::from([from]));
        while let Some(node) = open.pop() {
            for target in &self.nodes[node].successors {
                if *target == to {
                    return !self.is_back_edge(node, to);
                }
                if !self.is_back_edge(node, *target) && visited.insert(*target) {
                    open.push(*target);
                }
            }
        }
        false
    }

    /// Returns the dominators of a node, the nearest first, without itself.
    pub fn dominators_of(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.dominators[node], |node| self.dominators[*node])
    }

    /// Returns true for an edge back to the header of a loop around its source.
    pub fn is_back_edge(&self, from: usize, to: usize) -> bool {
        self.position[from] >= self.position[to]
    }

    /// Adds the nodes of all frames, from a list of functions with their callers.
    fn add_frame(
        &mut self,
        module: &'m SpirvModule,
        open: &mut Vec<PendingCall<'m>>,
    ) -> Result<(), Unproved> {
        while let Some((function, caller)) = open.pop() {
            let frame = self.frames.len();
            let Some(code) = module.functions.get(&function).filter(|function| !function.code.is_empty())
            else {
                return Err(self.before_call(UnprovedReason::MissingFunction, caller));
            };
            if frame >= MAX_FRAMES {
                return Err(self.before_call(UnprovedReason::TooLarge, caller));
            }
            self.frames.push(Frame {
                function: code,
                caller: caller.map(|(frame, arguments, _)| (frame, arguments)),
            });
            let first = self.nodes.len();
            // The node after the call continues; the call enters here.
            let continuation = caller.map(|(_, _, node)| {
                let after = self.nodes[node].successors[0];
                self.nodes[node].successors = vec![first];
                self.nodes[node].end = NodeEnd::Enter { frame };
                if let Some((returned, _)) = &mut self.nodes[after].returned {
                    *returned = frame;
                }
                after
            });
            self.add_blocks(module, frame, continuation, open)?;
        }
        Ok(())
    }

    /// Returns a reason at the last instruction before a call.
    fn before_call(&self, reason: UnprovedReason, call: Option<(usize, &[u32], usize)>) -> Unproved {
        Unproved::at(reason, call.and_then(|(_, _, node)| self.code(node).last()))
    }

    fn add_blocks(
        &mut self,
        module: &'m SpirvModule,
        frame: usize,
        continuation: Option<usize>,
        open: &mut Vec<PendingCall<'m>>,
    ) -> Result<(), Unproved> {
        let function = self.frames[frame].function;
        let (mut starts, mut branches) = (FxHashMap::default(), Vec::new());
        let (mut label, mut start, mut returned) = (0, 0, None);
        let first = self.nodes.len();
        for (at, instruction) in function.code.iter().enumerate() {
            let operation = module.operation(instruction);
            let mut push = |nodes: &mut Vec<Node>, code: Range<usize>, end, label| {
                let node = nodes.len();
                let successors = if end == NodeEnd::Next { vec![node + 1] } else { Vec::new() };
                nodes.push(Node { frame, label, code, end, successors, returned: returned.take() });
                node
            };
            match operation {
                SpirvOperation::Label => {
                    (label, start) = (instruction.result, at + 1);
                    starts.insert(label, self.nodes.len());
                }
                SpirvOperation::ControlBarrier { .. } => {
                    push(&mut self.nodes, start..at, NodeEnd::Next, label);
                    push(&mut self.nodes, at..at + 1, NodeEnd::Next, label);
                    start = at + 1;
                }
                SpirvOperation::Call { function, arguments } => {
                    let node = push(&mut self.nodes, start..at, NodeEnd::Next, label);
                    returned = Some((0, instruction.result));
                    open.push((function, Some((frame, arguments, node))));
                    start = at + 1;
                }
                SpirvOperation::Return { value } => {
                    let end = if continuation.is_some() { NodeEnd::Leave { value } } else { NodeEnd::Exit };
                    let node = push(&mut self.nodes, start..at, end, label);
                    self.nodes[node].successors.extend(continuation);
                }
                SpirvOperation::Kill { demotes: false } | SpirvOperation::EmitMeshTasks { .. } => {
                    push(&mut self.nodes, start..at, NodeEnd::Exit, label);
                }
                SpirvOperation::Unreachable => {
                    push(&mut self.nodes, start..at, NodeEnd::Unreachable, label);
                }
                _ if operation.is_branch() => {
                    let node = push(&mut self.nodes, start..at + 1, NodeEnd::Branch, label);
                    branches.push((node, instruction));
                }
                _ => {}
            }
            if self.nodes.len() > MAX_NODES {
                return Err(Unproved::at(UnprovedReason::TooLarge, Some(instruction)));
            }
        }
        for (node, instruction) in branches {
            let targets: Vec<usize> = module
                .successors(&function.types, instruction)
                .filter_map(|label| starts.get(&label).copied())
                .collect();
            self.nodes[node].successors = targets;
        }
        if self.nodes.len() == first {
            return Err(Unproved::new(UnprovedReason::MissingFunction));
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Unproved> {
        let count = self.nodes.len();
        let successors: Vec<Vec<usize>> = self.nodes.iter().map(|node| node.successors.clone()).collect();
        self.order = reverse_postorder(0, &successors);
        self.position = vec![usize::MAX; count];
        for (position, node) in self.order.iter().enumerate() {
            self.position[*node] = position;
        }
        self.predecessors = vec![Vec::new(); count];
        for node in &self.order {
            for successor in &successors[*node] {
                self.predecessors[*successor].push(*node);
            }
        }
        self.find_dominators();
        self.find_loops(&successors)
    }

    /// Finds immediate dominators (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
    fn find_dominators(&mut self) {
        let (position, mut known) = (&self.position, vec![None; self.nodes.len()]);
        known[0] = Some(0);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for node in self.order[1..].iter().copied() {
                let predecessors = self.predecessors[node].iter().copied();
                let new = predecessors.filter(|one| known[*one].is_some()).reduce(|mut a, mut b| {
                    while a != b {
                        let deeper = if position[a] > position[b] { &mut a } else { &mut b };
                        // Every known node but the root has a dominator nearer to the root.
                        *deeper = known[*deeper].unwrap_or(0);
                    }
                    a
                });
                has_changed |= new.is_some() && known[node] != new;
                known[node] = new.or(known[node]);
            }
        }
        known[0] = None;
        self.dominators = known;
    }

    fn find_loops(&mut self, successors: &[Vec<usize>]) -> Result<(), Unproved> {
        let mut bodies: FxHashMap<usize, BTreeSet<usize>> = FxHashMap::default();
        for node in self.order.clone() {
            for target in &successors[node] {
                if !self.is_back_edge(node, *target) {
                    continue;
                }
                if !self.dominates(*target, node) {
                    let branch = self.code(node).last();
                    return Err(Unproved::at(UnprovedReason::IrreducibleControlFlow, branch));
                }
                let body = bodies.entry(*target).or_insert_with(|| BTreeSet::from([*target]));
                let mut open = vec![node];
                while let Some(inner) = open.pop() {
                    if body.insert(inner) {
                        open.extend(self.predecessors[inner].iter().copied());
                    }
                }
            }
        }
        let mut loops: Vec<Loop> =
            bodies.into_iter().map(|(header, body)| Loop { header, body, parent: None }).collect();
        // Outer loops come first.
        loops.sort_by_key(|one| (std::cmp::Reverse(one.body.len()), one.header));
        self.loop_of = vec![None; self.nodes.len()];
        for (index, one) in loops.iter_mut().enumerate() {
            one.parent = self.loop_of[one.header];
            one.body.iter().for_each(|node| self.loop_of[*node] = Some(index));
        }
        self.loops = loops;
        Ok(())
    }
}

fn reverse_postorder(root: usize, successors: &[Vec<usize>]) -> Vec<usize> {
    let mut visited = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut stack = vec![(root, 0)];
    visited[root] = true;
    while let Some((node, next)) = stack.last_mut() {
        match successors[*node].get(*next) {
            Some(successor) => {
                *next += 1;
                if !visited[*successor] {
                    visited[*successor] = true;
                    let successor = *successor;
                    stack.push((successor, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
