//! Availability, visibility, their chains, and location order.

use litmus::Scope;

use crate::instances::{SHADER_SCOPES, scope_index};
use crate::operation::{Operation, OperationGraph, OperationKind, Relation, Set, holds, members};

/// An availability or visibility operation of a shader: an element of a chain.
#[derive(Clone, Copy, Debug)]
struct ChainElement {
    /// The operation that performs it.
    operation: usize,
    /// The scope that selects its domains (VK-AVSEM-05).
    scope: Scope,
    /// True for MakeAvailable or MakeVisible semantics, false for the operation of an access.
    is_of_semantics: bool,
}

/// Returns true if memory domains of the first scope are broader than those of the second one (VK-DOM-09).
/// The shader call domain is not broader than the queue family's, and is not compared with others (VK-DOM-08).
fn is_broader(wide: Scope, narrow: Scope) -> bool {
    let is_compared = |scope: Scope| scope != Scope::ShaderCall && scope != Scope::Invocation;
    match (wide, narrow) {
        (Scope::QueueFamily | Scope::Device, Scope::ShaderCall) => true,
        _ => is_compared(wide) && is_compared(narrow) && scope_index(wide) > scope_index(narrow),
    }
}

/// The scopes that have a memory domain.
fn memory_domains() -> impl Iterator<Item = Scope> {
    SHADER_SCOPES.into_iter().filter(|scope| *scope != Scope::Invocation)
}

impl OperationGraph<'_> {
    /// VK-AVSEM-07: the domain of the operation's scope, and those of smaller scope instances that are subsets of it and
    /// include the agent. VK-AVSEM-06: Invocation scope has none.
    fn includes_domain(&self, scope: Scope, thread: usize, domain: Scope) -> bool {
        if scope == Scope::Invocation || !self.has_domain(scope) || !self.has_domain(domain) {
            return false;
        }
        let (wide, narrow) =
            (self.instances.instance(scope, thread), self.instances.instance(domain, thread));
        scope == domain || is_broader(scope, domain) && narrow & !wide == 0
    }

    /// Returns true if the profile has a scope and its domain (VK-DOM-07, VK-DOM-08).
    fn has_domain(&self, scope: Scope) -> bool {
        match scope {
            Scope::ShaderCall => self.profile.has_shader_calls(),
            Scope::FragmentInterlock => self.profile.has_interlock(),
            _ => true,
        }
    }

    /// The availability operations (VK-AVSEM-01, VK-INST-01, VK-INF-06), or the visibility operations (VK-AVSEM-03,
    /// VK-INST-03).
    fn chain_elements(&self, availability: bool) -> Vec<ChainElement> {
        let mut found = Vec::new();
        for (operation, performed_operation) in self.operations.iter().enumerate() {
            let element = match (&performed_operation.kind, availability) {
                (OperationKind::Available, true) | (OperationKind::Visible, false) => {
                    Some((performed_operation.scope, true))
                }
                (OperationKind::Write(touch), true) | (OperationKind::Read(touch), false) => {
                    touch.operation_scope.map(|scope| (scope, false))
                }
                _ => None,
            };
            if let Some((scope, of_semantics)) = element
                && scope != Scope::Invocation
            {
                found.push(ChainElement { operation, scope, is_of_semantics: of_semantics });
            }
        }
        found
    }

    /// Returns true if the tuples of an element include those of an access to a cell: agent, reference and
    /// location. VK-AVSEM-01, -03: all references in the storage classes of the semantics; VK-INST-01, -03:
    /// the reference and locations of the access.
    fn covers_access(&self, element: &ChainElement, access: &Operation, cell: usize) -> bool {
        let element_operation = &self.operations[element.operation];
        element_operation.thread == access.thread && self.covers_memory(element, access, cell)
    }

    fn covers_memory(&self, element: &ChainElement, access: &Operation, cell: usize) -> bool {
        let element_operation = &self.operations[element.operation];
        match (element_operation.footprint(), access.footprint()) {
            (Some(element_access), Some(touch)) => {
                element_access.has_cell(cell) && element_access.reference == touch.reference
            }
            _ => element_operation.memory_classes.0 & access.memory_classes.0 != 0,
        }
    }

    /// VK-AVC-01, -04, VK-VISC-01: intermediate elements of a chain. In addition to the element that covers the
    /// access, these are MakeAvailable or MakeVisible operations with the storage class of the access, or
    /// operations of the agent itself.
    fn can_link(&self, element: &ChainElement, access: &Operation, cell: usize) -> bool {
        if element.is_of_semantics {
            self.covers_memory(element, access, cell)
        } else {
            self.covers_access(element, access, cell)
        }
    }

    /// The chain elements at the end towards the other access, for each domain to which they pass an access on: for a write
    /// the availability operations that make it available (VK-AV-03, VK-AVC-01 to -03), for a read the visibility operations
    /// that start making it visible (VK-AV-05, VK-VISC-01 to -03).
    fn chain_ends(
        &self,
        access: usize,
        cell: usize,
        elements: &[ChainElement],
        happens_before: &Relation,
    ) -> [Set; SHADER_SCOPES.len()] {
        let access_operation = &self.operations[access];
        let available = access_operation.is_write();
        // (element, domain) pairs that a chain reaches, as bits of a domain's row.
        let mut reached = vec![[false; SHADER_SCOPES.len()]; elements.len()];
        let mut worklist = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            // X ->rcpo AVC, VISC ->rcpo Y (VK-LO-04, VK-LO-05).
            let is_in_program_order = if available {
                self.is_before_or_equal(access, element.operation)
            } else {
                self.is_before_or_equal(element.operation, access)
            };
            if !is_in_program_order || !self.covers_access(element, access_operation, cell) {
                continue;
            }
            for domain in memory_domains() {
                if self.includes_domain(element.scope, access_operation.thread, domain) {
                    reached[index][scope_index(domain)] = true;
                    worklist.push((index, domain));
                }
            }
        }
        // VK-FEAT-03: without the feature, only one element.
        while let Some((index, domain)) = worklist.pop() {
            if !self.profile.chains {
                break;
            }
            let element = &elements[index];
            let thread = self.operations[element.operation].thread;
            for (next_index, next) in elements.iter().enumerate() {
                let next_thread = self.operations[next.operation].thread;
                let ordered = if available {
                    holds(happens_before, element.operation, next.operation)
                } else {
                    holds(happens_before, next.operation, element.operation)
                };
                if !ordered
                    || !self.can_link(next, access_operation, cell)
                    || !self.instances.includes_thread(domain, thread, next_thread)
                {
                    continue;
                }
                for wider in memory_domains() {
                    if is_broader(wider, domain)
                        && self.includes_domain(next.scope, next_thread, wider)
                        && !reached[next_index][scope_index(wider)]
                    {
                        reached[next_index][scope_index(wider)] = true;
                        worklist.push((next_index, wider));
                    }
                }
            }
        }
        // The last element passes on to all domains of its destination scope, whose instances must be those of the access.
        let mut found = [0; SHADER_SCOPES.len()];
        for (element, reached) in elements.iter().zip(&reached) {
            if !reached.contains(&true) {
                continue;
            }
            let thread = self.operations[element.operation].thread;
            for domain in memory_domains() {
                if self.includes_domain(element.scope, thread, domain)
                    && self.instances.includes_thread(domain, thread, access_operation.thread)
                {
                    found[scope_index(domain)] |= 1 << element.operation;
                }
            }
        }
        found
    }

    /// VK-LO-01 to -15: location order between accesses that overlap, for each cell (VK-LO-13).
    pub fn location_order(&self, happens_before: &Relation) -> Vec<Relation> {
        let (availability, visibility) = (self.chain_elements(true), self.chain_elements(false));
        let order_in_cell = |cell| self.cell_location_order(cell, happens_before, &availability, &visibility);
        (0..self.cells.len()).map(order_in_cell).collect()
    }

    fn cell_location_order(
        &self,
        cell: usize,
        happens_before: &Relation,
        availability: &[ChainElement],
        visibility: &[ChainElement],
    ) -> Relation {
        let count = self.operations.len();
        let accesses: Vec<usize> = (0..count)
            .filter(|index| self.operations[*index].footprint().is_some_and(|touch| touch.has_cell(cell)))
            .collect();
        let mut ends: Vec<Option<[Set; SHADER_SCOPES.len()]>> = vec![None; count];
        let mut found = vec![0; count];
        for &x in &accesses {
            for &y in &accesses {
                let (left, right) = (&self.operations[x], &self.operations[y]);
                let (Some(left_access), Some(there)) = (left.footprint(), right.footprint()) else {
                    continue;
                };
                if x == y {
                    continue;
                }
                let after = holds(happens_before, x, y);
                let same_reference = left_access.reference == there.reference;
                let non_private = left_access.non_private && there.non_private;
                let mut is_ordered_through_shader = || {
                    // Computed once for an access, and only if some pair needs it.
                    let from = *ends[x]
                        .get_or_insert_with(|| self.chain_ends(x, cell, availability, happens_before));
                    let to = if right.is_read() {
                        *ends[y].get_or_insert_with(|| self.chain_ends(y, cell, visibility, happens_before))
                    } else {
                        // A write needs no visibility: the chain ends at the write itself.
                        [1 << y; SHADER_SCOPES.len()]
                    };
                    memory_domains().any(|domain| {
                        let reached = to[scope_index(domain)];
                        self.instances.includes_thread(domain, left.thread, right.thread)
                            && members(from[scope_index(domain)])
                                .any(|last| happens_before[last] & reached != 0)
                    })
                };
                // VK-LO-01; VK-LO-02; VK-LO-03; VK-LO-04 to -08; VK-LO-09, VK-LO-10.
                let ordered = left.thread == right.thread && same_reference && after
                    || left.is_read() && non_private && after
                    || left.is_read() && holds(&self.system_sync, x, y)
                    || left.is_write() && same_reference && non_private && is_ordered_through_shader()
                    || left.is_write() && self.is_ordered_through_device(x, y, happens_before);
                if ordered {
                    found[x] |= 1 << y;
                }
            }
        }
        found
    }

    /// VK-LO-09 to -12: order through the device and host domains, regardless of references, if access masks
    /// and mapped ranges cover the accesses.
    ///
    /// Happens-before orders accesses, availability, domain and visibility operations alike (VK-AV-07). A later
    /// write requires no visibility operation.
    fn is_ordered_through_device(&self, x: usize, y: usize, happens_before: &Relation) -> bool {
        let write = self.operations[y].is_write();
        let ordered = |a: usize, b: usize| holds(happens_before, a, b);
        let (from, to) = (self.hosts[self.operations[x].thread], self.hosts[self.operations[y].thread]);
        let count = self.operations.len();
        // Operations that cover the access. Host-coherent memory is available and visible immediately as well
        // (VK-VOP-09).
        let mut available: Vec<usize> =
            (0..count).filter(|a| self.makes_available(*a, x, from) && ordered(x, *a)).collect();
        if from && self.is_coherent(x) {
            available.push(x);
        }
        let mut visible: Vec<usize> =
            (0..count).filter(|v| !write && self.makes_visible(*v, y, to) && ordered(*v, y)).collect();
        if write || to && self.is_coherent(y) {
            visible.push(y);
        }
        // A domain operation from a domain to itself does not exist (VK-LO-11).
        let is_domain_operation = |index: &usize| matches!(self.operations[*index].kind, OperationKind::Domain { to_host } if to_host == to);
        available.iter().any(|&a| {
            visible.iter().any(|&v| {
                if from == to {
                    ordered(a, v)
                } else {
                    (0..count).filter(is_domain_operation).any(|d| ordered(a, d) && ordered(d, v))
                }
            })
        })
    }

    fn is_coherent(&self, access: usize) -> bool {
        self.operations[access].footprint().is_some_and(|touch| !self.noncoherent.contains(&touch.storage))
    }

    /// Returns true if an operation is an availability operation to the domain of the device or the host that
    /// includes a write.
    fn makes_available(&self, operation: usize, write: usize, host: bool) -> bool {
        match self.operations[operation].kind {
            OperationKind::DeviceAvailable(mask) => !host && mask.covers_access(false, true),
            OperationKind::Mapped { available: true, ranges } => host && self.in_ranges(ranges, write),
            _ => false,
        }
    }

    /// Returns true if an operation is a visibility operation from the domain of the device or the host that
    /// includes a read.
    fn makes_visible(&self, operation: usize, read: usize, host: bool) -> bool {
        match self.operations[operation].kind {
            OperationKind::DeviceVisible(mask) => !host && mask.covers_access(false, false),
            OperationKind::Mapped { available: false, ranges } => host && self.in_ranges(ranges, read),
            _ => false,
        }
    }

    fn in_ranges(&self, ranges: usize, access: usize) -> bool {
        let ranges = &self.ranges[ranges];
        ranges.is_empty()
            || self.operations[access].footprint().is_some_and(|touch| ranges.contains(&touch.storage))
    }
}
