//! Base sets and relations of cat files that the event structure alone determines.

use litmus::{Scope, SplitHalf, StorageClass, ThreadId};

use super::vocabulary::{Tags, tag_of};
use super::{Event, ExecutedBarrierHalf, Owner, Skeleton};
use crate::matrix::{Bits, Matrix};

impl Skeleton {
    /// Returns a base set of the model. `mask` is the argument of `SC` and `SEM`.
    pub(crate) fn base_set<S: Bits>(&self, name: &str, mask: Option<u8>) -> Option<S> {
        let collect = |test: &dyn Fn(&Event) -> bool| {
            let mut set = S::empty();
            for (index, event) in self.events.iter().enumerate() {
                if test(event) {
                    set.insert(index);
                }
            }
            set
        };
        if let Some(mask) = mask {
            return match name {
                "SC" => Some(collect(&|e| e.tags.storage_classes & mask != 0)),
                "SEM" => Some(collect(&|e| e.tags.semantics & mask == mask)),
                _ => None,
            };
        }
        let digit = |prefix: &str| {
            name.strip_prefix(prefix).and_then(|d| d.parse::<u8>().ok()).filter(|d| *d < 4).map(|d| 1u8 << d)
        };
        if let Some(class) = digit("SEMSC") {
            return Some(collect(&|e| e.tags.semantics & class != 0));
        }
        if let Some(class) = digit("SC") {
            return Some(collect(&|e| e.tags.storage_classes & class != 0));
        }
        match name {
            "M" => Some(collect(&|e| e.tags.has_any(Tags::R | Tags::W))),
            "A" => Some(collect(&|e| e.tags.has(Tags::ATOM))),
            "GLOBAL" => Some(collect(&|e| e.tags.storage_classes == 1 << StorageClass::Buffer.index())),
            "GROUP" => Some(collect(&|e| e.tags.storage_classes == 1 << StorageClass::Workgroup.index())),
            "PRIV" => Some(collect(&|e| {
                e.tags.has_any(Tags::R | Tags::W) && !e.tags.has_any(Tags::NONPRIV | Tags::IW)
            })),
            _ => tag_of(name).map(|tag| collect(&|e| e.tags.has(tag))),
        }
    }

    /// Returns the relation of events with equal keys; events without a key are omitted.
    fn equivalence_relation<M: Matrix, K: PartialEq>(&self, key: impl Fn(&Event) -> Option<K>) -> M {
        let mut matrix = M::empty(self.len());
        for (i, event) in self.events.iter().enumerate() {
            let Some(class_key) = key(event) else { continue };
            // An earlier event of the same class has filled this row.
            if !matrix.row(i).is_empty() {
                continue;
            }
            let mut row = M::Set::empty();
            for (j, other) in self.events.iter().enumerate().skip(i) {
                if key(other).as_ref() == Some(&class_key) {
                    row.insert(j);
                }
            }
            row.iter().for_each(|j| matrix.set_row(j, row));
        }
        matrix
    }

    /// Returns a base relation that the program alone decides; `None` for `rf`, `co` and unknown names.
    pub(crate) fn base_relation<M: Matrix>(&self, name: &str) -> Option<M> {
        let n = self.len();
        let from_list = |list: &[(u16, u16)]| {
            M::from_pairs(n, list.iter().map(|(from, to)| (usize::from(*from), usize::from(*to))))
        };
        let from_predicate = |related: &dyn Fn(usize, usize) -> bool| {
            M::from_pairs(
                n,
                (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| related(*i, *j)),
            )
        };
        let same_scope_instance = |scope: Scope| {
            self.equivalence_relation(|event| event.place.and_then(|place| place.scope_instance(scope)))
        };
        // Events of one thread are contiguous.
        let thread_end = |i: usize| {
            let owner = self.events[i].owner;
            let mut end = i + 1;
            // Initial writes belong to no thread: each is alone.
            while owner != Owner::Initial && self.events.get(end).is_some_and(|e| e.owner == owner) {
                end += 1;
            }
            end
        };
        let same_thread = || {
            let mut matrix = M::empty(n);
            let mut start = 0;
            while start < n {
                let end = thread_end(start);
                let events = M::Set::universe(end).difference(M::Set::universe(start));
                (start..end).for_each(|i| matrix.set_row(i, events));
                start = end;
            }
            matrix
        };
        Some(match name {
            "po" => {
                let mut matrix = same_thread();
                for i in 0..n {
                    // Parts of one operation and components of one vector are unordered and contiguous.
                    let vector = self.events[i].first_of_vector;
                    let mut next = i + 1;
                    while self.events.get(next).is_some_and(|event| event.first_of_vector == vector) {
                        next += 1;
                    }
                    matrix.set_row(i, matrix.row(i).difference(M::Set::universe(next)));
                }
                matrix
            }
            "int" => same_thread(),
            "ext" => same_thread().complement(n),
            "loc" => self.equivalence_relation(|event| event.storage),
            "vloc" | "sref" => self.equivalence_relation(|event| event.reference),
            "block" => self.equivalence_relation(|event| event.block),
            "ssg" => same_scope_instance(Scope::Subgroup),
            "swg" => same_scope_instance(Scope::Workgroup),
            "sqf" => same_scope_instance(Scope::QueueFamily),
            "part" => from_predicate(&|i, j| i != j && self.events[i].first_of_operation == self.events[j].first_of_operation),
            "component" => from_predicate(&|i, j| {
                let (left, right) = (&self.events[i], &self.events[j]);
                left.first_of_vector == right.first_of_vector && left.first_of_operation != right.first_of_operation
            }),
            "partial" => from_predicate(&|i, j| match (self.events[i].extent, self.events[j].extent) {
                (Some(left), Some(right)) => left.storage == right.storage && left != right,
                _ => false,
            }),
            "uncovered" => from_list(&self.uncovered_pairs),
            "sco" => from_list(&self.shader_call_order),
            "subop" => from_list(&self.subgroup_order),
            "interlock" => from_list(&self.interlock_order),
            "scall" => from_predicate(&|i, j| {
                self.thread_pair(i, j).is_some_and(|(left, right)| {
                    let group = |thread: ThreadId| self.shader_call_groups.get(usize::from(thread.0));
                    left == right || (group(left).is_some() && group(left) == group(right))
                })
            }),
            "sfi" => from_predicate(&|i, j| {
                self.thread_pair(i, j)
                    .is_some_and(|pair| pair.0 == pair.1 || self.overlapping_fragments.contains(&pair))
            }),
            "rmw" => {
                let halves = self.events.iter().enumerate();
                M::from_pairs(n, halves.filter_map(|(i, event)| Some((i, usize::from(event.write_half?)))))
            }
            "addr" => from_list(&self.address_dependencies),
            "ctrl" => from_list(&self.control_dependencies),
            "syncbar" => from_list(&self.barrier_sync),
            "syncsplit" => self.split_barrier_pairs(&|arrival, wait| {
                let scope = arrival.scope;
                let places = (self.events[usize::from(arrival.event)].place, self.events[usize::from(wait.event)].place);
                scope == wait.scope
                    && matches!(places, (Some(left), Some(right)) if left.scope_instance(scope) == right.scope_instance(scope))
            }),
            "round" => self.split_barrier_pairs(&|arrival, wait| {
                // Invocations of a subgroup that execute other instructions have diverged: each executes both halves.
                let executes = |thread: &ExecutedBarrierHalf, half: &ExecutedBarrierHalf| {
                    let owner = |half: &ExecutedBarrierHalf| self.events[usize::from(half.event)].owner;
                    self.barrier_halves.iter().any(|candidate| {
                        owner(candidate) == owner(thread)
                            && (candidate.half, candidate.scope, candidate.round, &candidate.id)
                                == (half.half, half.scope, half.round, &half.id)
                    })
                };
                arrival.round == wait.round
                    && (arrival.scope != Scope::Subgroup || executes(arrival, wait) && executes(wait, arrival))
            }),
            "data" => from_list(&self.data_dependencies),
            "ssw" | "pkt" => from_list(&self.system_sync),
            _ => return None,
        })
    }

    /// Returns the related pairs of arrivals and waits of split barriers.
    fn split_barrier_pairs<M: Matrix>(
        &self,
        related: &dyn Fn(&ExecutedBarrierHalf, &ExecutedBarrierHalf) -> bool,
    ) -> M {
        let halves = |half: SplitHalf| self.barrier_halves.iter().filter(move |known| known.half == half);
        let pairs = halves(SplitHalf::Arrive)
            .flat_map(|arrival| halves(SplitHalf::Wait).map(move |wait| (arrival, wait)));
        let related = pairs.filter(|(arrival, wait)| related(arrival, wait));
        M::from_pairs(self.len(), related.map(|(a, w)| (usize::from(a.event), usize::from(w.event))))
    }

    /// Returns the threads of two events, if both belong to threads.
    fn thread_pair(&self, i: usize, j: usize) -> Option<(ThreadId, ThreadId)> {
        match (self.events[i].owner, self.events[j].owner) {
            (Owner::Thread(left), Owner::Thread(right)) => Some((left, right)),
            _ => None,
        }
    }
}
