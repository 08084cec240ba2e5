//! Hash-consed expression graph with algebraic simplification.
//!
//! Equal expressions share one node. Each method returns the node of its operation, or a cheaper node of
//! equal value by the laws of relation algebra. `[s]; r` and `r; [s]` become restrictions of rows and
//! columns, which cost a mask instead of a composition.

use super::plan::{BaseReference, GroupId, NameId, NodeId, NodeKind, PlanNode, StatementId};
use super::vocabulary::{ClassFamilies, Membership, Vocabulary};
use crate::quick::QuickMap;

pub(crate) struct ExpressionGraph<'a> {
    vocabulary: &'a Vocabulary,
    families: &'a ClassFamilies,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) origins: Vec<StatementId>,
    pub(crate) names: Vec<String>,
    /// Change frequency of each node's value: the maximum over its operands.
    ranks: Vec<u8>,
    node_ids: QuickMap<PlanNode, NodeId>,
    /// The statement that new nodes are made for.
    pub(crate) statement: StatementId,
}

impl<'a> ExpressionGraph<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, families: &'a ClassFamilies) -> Self {
        ExpressionGraph {
            vocabulary,
            families,
            nodes: Vec::new(),
            origins: Vec::new(),
            names: Vec::new(),
            ranks: Vec::new(),
            node_ids: QuickMap::default(),
            statement: StatementId(0),
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> PlanNode {
        self.nodes[id.to_index()]
    }

    /// Returns how often the node's value changes during the search.
    pub(crate) fn node_rank(&self, id: NodeId) -> u8 {
        self.ranks[id.to_index()]
    }

    pub(crate) fn intern_node(&mut self, node: PlanNode) -> NodeId {
        if let Some(known) = self.node_ids.get(&node) {
            return *known;
        }
        let rank = match node {
            PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
                self.names.get(base.name.0 as usize).map_or(0, |name| self.vocabulary.rank_of(name))
            }
            // The fixpoint is not known yet, so assume that it changes with every candidate.
            PlanNode::Recursive { .. } => u8::MAX,
            node => node.operand_nodes().map(|operand| self.node_rank(operand)).max().unwrap_or(0),
        };
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.origins.push(self.statement);
        self.ranks.push(rank);
        self.node_ids.insert(node, id);
        id
    }

    fn name_id(&mut self, name: &str) -> NameId {
        let index = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        NameId(index as u32)
    }

    /// A base set or relation.
    pub(crate) fn base_node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        if self.families.absent.iter().any(|absent| absent == name) {
            return match kind {
                NodeKind::Set => self.empty_set(),
                NodeKind::Relation => self.empty_relation(),
            };
        }
        let base = BaseReference { name: self.name_id(name), mask: None };
        self.intern_node(match kind {
            NodeKind::Set => PlanNode::BaseSet(base),
            NodeKind::Relation => PlanNode::BaseRelation(base),
        })
    }

    /// Returns the node of a base that the engine supplies, without applying known emptiness.
    pub(crate) fn leaf_node(&mut self, name: &str, kind: NodeKind, mask: Option<u8>) -> NodeId {
        let base = BaseReference { name: self.name_id(name), mask };
        self.intern_node(match kind {
            NodeKind::Set => PlanNode::BaseSet(base),
            NodeKind::Relation => PlanNode::BaseRelation(base),
        })
    }

    /// A set indexed by storage classes; classes that do not occur are left out, or leave nothing.
    pub(crate) fn indexed_set(&mut self, name: &str, membership: Membership, mask: u8) -> NodeId {
        let present = self.families.all_classes();
        let mask = match membership {
            // An event has only the storage classes that occur in the program. A set that requires
            // an absent class is empty.
            Membership::Any => mask & present,
            Membership::All if mask & !present != 0 => return self.empty_set(),
            Membership::All if mask == 0 => return self.universe_set(),
            Membership::All => mask,
        };
        if mask == 0 || self.families.absent.iter().any(|absent| absent == name) {
            return self.empty_set();
        }
        let base = BaseReference { name: self.name_id(name), mask: Some(mask) };
        self.intern_node(PlanNode::BaseSet(base))
    }

    pub(crate) fn recursive_node(&mut self, group: GroupId, index: u32, kind: NodeKind) -> NodeId {
        self.intern_node(PlanNode::Recursive { group, index, node_kind: kind })
    }

    pub(crate) fn empty_set(&mut self) -> NodeId {
        self.intern_node(PlanNode::EmptySet)
    }

    pub(crate) fn universe_set(&mut self) -> NodeId {
        self.intern_node(PlanNode::Universe)
    }

    pub(crate) fn empty_relation(&mut self) -> NodeId {
        self.intern_node(PlanNode::Empty)
    }

    pub(crate) fn identity_relation(&mut self) -> NodeId {
        self.intern_node(PlanNode::Identity)
    }

    pub(crate) fn full_relation(&mut self) -> NodeId {
        self.intern_node(PlanNode::Full)
    }

    /// The masks of two nodes that are one indexed set of this membership at different classes.
    fn matching_indexed_sets(
        &self,
        a: PlanNode,
        b: PlanNode,
        membership: Membership,
    ) -> Option<(String, u8, u8)> {
        let (PlanNode::BaseSet(a), PlanNode::BaseSet(b)) = (a, b) else {
            return None;
        };
        let (Some(first), Some(second)) = (a.mask, b.mask) else {
            return None;
        };
        let name = self.names.get(a.name.0 as usize)?;
        (a.name == b.name && self.vocabulary.membership_of(name) == Some(membership))
            .then(|| (name.clone(), first, second))
    }

    pub(crate) fn set_union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) =
            self.matching_indexed_sets(self.node(a), self.node(b), Membership::Any)
        {
            // `SC(a) | SC(b)` is `SC(a | b)`: an event of any of the classes.
            return self.indexed_set(&name, Membership::Any, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (PlanNode::EmptySet, _) | (_, PlanNode::Universe) => b,
            (_, PlanNode::EmptySet) | (PlanNode::Universe, _) => a,
            // Operands of commutative operations are sorted, so that `a | b` and `b | a` share one
            // node.
            _ => self.intern_node(PlanNode::SetUnion(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) =
            self.matching_indexed_sets(self.node(a), self.node(b), Membership::All)
        {
            // `SEM(a) & SEM(b)` is `SEM(a | b)`: an operation with all of the semantics.
            return self.indexed_set(&name, Membership::All, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (PlanNode::EmptySet, _) | (_, PlanNode::Universe) => a,
            (_, PlanNode::EmptySet) | (PlanNode::Universe, _) => b,
            (_, PlanNode::SetComplement(c)) => self.set_difference(a, c),
            (PlanNode::SetComplement(c), _) => self.set_difference(b, c),
            _ => self.intern_node(PlanNode::SetIntersection(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty_set(),
            (_, PlanNode::Universe) => self.empty_set(),
            (PlanNode::EmptySet, _) | (_, PlanNode::EmptySet) => a,
            (PlanNode::Universe, _) => self.set_complement(b),
            (_, PlanNode::SetComplement(c)) => self.set_intersection(a, c),
            _ => self.intern_node(PlanNode::SetDifference(a, b)),
        }
    }

    pub(crate) fn set_complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::EmptySet => self.universe_set(),
            PlanNode::Universe => self.empty_set(),
            PlanNode::SetComplement(b) => b,
            _ => self.intern_node(PlanNode::SetComplement(a)),
        }
    }

    pub(crate) fn domain_of(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            PlanNode::Empty => self.empty_set(),
            // Reflexive relations relate every event.
            PlanNode::Identity | PlanNode::Full | PlanNode::Star(_) | PlanNode::Optional(_) => {
                self.universe_set()
            }
            PlanNode::IdentityOn(s) => s,
            PlanNode::Inverse(a) => self.range_of(a),
            // The first step of a path starts where the path does.
            PlanNode::Plus(a) => self.domain_of(a),
            _ => self.intern_node(PlanNode::Domain(r)),
        }
    }

    pub(crate) fn range_of(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            PlanNode::Empty => self.empty_set(),
            PlanNode::Identity | PlanNode::Full | PlanNode::Star(_) | PlanNode::Optional(_) => {
                self.universe_set()
            }
            PlanNode::IdentityOn(s) => s,
            PlanNode::Inverse(a) => self.domain_of(a),
            PlanNode::Plus(a) => self.range_of(a),
            _ => self.intern_node(PlanNode::Range(r)),
        }
    }

    pub(crate) fn identity_on(&mut self, s: NodeId) -> NodeId {
        match self.node(s) {
            PlanNode::EmptySet => self.empty_relation(),
            PlanNode::Universe => self.identity_relation(),
            _ => self.intern_node(PlanNode::IdentityOn(s)),
        }
    }

    pub(crate) fn cartesian_product(&mut self, s: NodeId, t: NodeId) -> NodeId {
        match (self.node(s), self.node(t)) {
            (PlanNode::EmptySet, _) | (_, PlanNode::EmptySet) => self.empty_relation(),
            (PlanNode::Universe, PlanNode::Universe) => self.full_relation(),
            _ => self.intern_node(PlanNode::Product(s, t)),
        }
    }

    pub(crate) fn relation_union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (PlanNode::Empty, _) | (_, PlanNode::Full) => b,
            (_, PlanNode::Empty) | (PlanNode::Full, _) => a,
            (PlanNode::Identity, _) => self.reflexive_closure(b),
            (_, PlanNode::Identity) => self.reflexive_closure(a),
            (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                let both = self.set_union(s, t);
                self.identity_on(both)
            }
            _ => self.intern_node(PlanNode::Union(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn relation_intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (PlanNode::Empty, _) | (_, PlanNode::Full) => a,
            (_, PlanNode::Empty) | (PlanNode::Full, _) => b,
            (PlanNode::Identity, PlanNode::Star(_) | PlanNode::Optional(_)) => a,
            (PlanNode::Star(_) | PlanNode::Optional(_), PlanNode::Identity) => b,
            (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            // `r & (s * t)` is `[s]; r; [t]`: two masks instead of a product and an intersection.
            (_, PlanNode::Product(s, t)) => self.restrict_both_sides(a, s, t),
            (PlanNode::Product(s, t), _) => self.restrict_both_sides(b, s, t),
            (_, PlanNode::Complement(c)) => self.relation_difference(a, c),
            (PlanNode::Complement(c), _) => self.relation_difference(b, c),
            _ => self.intern_node(PlanNode::Intersection(a.min(b), a.max(b))),
        }
    }

    /// `r & (s * t)`
    fn restrict_both_sides(&mut self, r: NodeId, s: NodeId, t: NodeId) -> NodeId {
        let rows = self.restrict_rows(s, r);
        self.restrict_columns(rows, t)
    }

    pub(crate) fn relation_difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty_relation(),
            (_, PlanNode::Full) => self.empty_relation(),
            (PlanNode::Empty, _) | (_, PlanNode::Empty) => a,
            (PlanNode::Full, _) => self.relation_complement(b),
            (_, PlanNode::Complement(c)) => self.relation_intersection(a, c),
            (
                PlanNode::Identity | PlanNode::IdentityOn(_),
                PlanNode::Identity | PlanNode::Star(_) | PlanNode::Optional(_),
            ) => self.empty_relation(),
            (PlanNode::IdentityOn(s), PlanNode::IdentityOn(t)) => {
                let rest = self.set_difference(s, t);
                self.identity_on(rest)
            }
            // `r \ (r; r+)`
            (_, PlanNode::Sequence(first, rest)) if first == a && self.node(rest) == PlanNode::Plus(a) => {
                self.immediate_relation(a)
            }
            _ => self.intern_node(PlanNode::Difference(a, b)),
        }
    }

    pub(crate) fn relation_complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::Empty => self.full_relation(),
            PlanNode::Full => self.empty_relation(),
            PlanNode::Complement(b) => b,
            _ => self.intern_node(PlanNode::Complement(a)),
        }
    }

    pub(crate) fn compose_relations(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            (PlanNode::Empty, _) | (_, PlanNode::Identity) => a,
            (_, PlanNode::Empty) | (PlanNode::Identity, _) => b,
            (PlanNode::IdentityOn(s), _) => self.restrict_rows(s, b),
            (_, PlanNode::IdentityOn(t)) => self.restrict_columns(a, t),
            (PlanNode::Star(_), PlanNode::Star(_)) if a == b => a,
            (PlanNode::Star(r), PlanNode::Optional(q)) if r == q => a,
            (PlanNode::Optional(q), PlanNode::Star(r)) if r == q => b,
            (PlanNode::Star(r), PlanNode::Plus(q)) if r == q => b,
            (PlanNode::Plus(q), PlanNode::Star(r)) if r == q => a,
            // `r*; r` is `r+`.
            (PlanNode::Star(r), _) if r == b => self.transitive_closure(r),
            (_, PlanNode::Star(r)) if r == a => self.transitive_closure(r),
            _ => self.intern_node(PlanNode::Sequence(a, b)),
        }
    }

    pub(crate) fn restrict_rows(&mut self, s: NodeId, r: NodeId) -> NodeId {
        match (self.node(s), self.node(r)) {
            (PlanNode::Universe, _) | (_, PlanNode::Empty) => r,
            (PlanNode::EmptySet, _) => self.empty_relation(),
            (_, PlanNode::Identity) => self.identity_on(s),
            (_, PlanNode::IdentityOn(t)) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (_, PlanNode::Full) => {
                let all = self.universe_set();
                self.cartesian_product(s, all)
            }
            (_, PlanNode::Product(t, u)) => {
                let both = self.set_intersection(s, t);
                self.cartesian_product(both, u)
            }
            (_, PlanNode::RestrictRows(t, inner)) => {
                let both = self.set_intersection(s, t);
                self.restrict_rows(both, inner)
            }
            // One order of the two restrictions: columns outside.
            (_, PlanNode::RestrictColumns(inner, t)) => {
                let rows = self.restrict_rows(s, inner);
                self.restrict_columns(rows, t)
            }
            _ => self.intern_node(PlanNode::RestrictRows(s, r)),
        }
    }

    pub(crate) fn restrict_columns(&mut self, r: NodeId, s: NodeId) -> NodeId {
        match (self.node(r), self.node(s)) {
            (_, PlanNode::Universe) | (PlanNode::Empty, _) => r,
            (_, PlanNode::EmptySet) => self.empty_relation(),
            (PlanNode::Identity, _) => self.identity_on(s),
            (PlanNode::IdentityOn(t), _) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (PlanNode::Full, _) => {
                let all = self.universe_set();
                self.cartesian_product(all, s)
            }
            (PlanNode::Product(t, u), _) => {
                let both = self.set_intersection(s, u);
                self.cartesian_product(t, both)
            }
            (PlanNode::RestrictColumns(inner, t), _) => {
                let both = self.set_intersection(s, t);
                self.restrict_columns(inner, both)
            }
            _ => self.intern_node(PlanNode::RestrictColumns(r, s)),
        }
    }

    pub(crate) fn inverse_of(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::Empty | PlanNode::Identity | PlanNode::Full | PlanNode::IdentityOn(_) => a,
            PlanNode::Inverse(b) => b,
            PlanNode::Product(s, t) => self.cartesian_product(t, s),
            PlanNode::RestrictRows(s, r) => {
                let turned = self.inverse_of(r);
                self.restrict_columns(turned, s)
            }
            PlanNode::RestrictColumns(r, s) => {
                let turned = self.inverse_of(r);
                self.restrict_rows(s, turned)
            }
            _ => self.intern_node(PlanNode::Inverse(a)),
        }
    }

    pub(crate) fn transitive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            // These are transitive already: a product that composes with itself is contained in
            // itself.
            PlanNode::Empty
            | PlanNode::Identity
            | PlanNode::Full
            | PlanNode::IdentityOn(_)
            | PlanNode::Product(..)
            | PlanNode::Plus(_)
            | PlanNode::Star(_) => a,
            PlanNode::Optional(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(PlanNode::Plus(a)),
        }
    }

    pub(crate) fn reflexive_transitive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::Empty | PlanNode::Identity | PlanNode::IdentityOn(_) => self.identity_relation(),
            PlanNode::Full | PlanNode::Star(_) => a,
            PlanNode::Plus(b) | PlanNode::Optional(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(PlanNode::Star(a)),
        }
    }

    pub(crate) fn reflexive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::Empty | PlanNode::Identity | PlanNode::IdentityOn(_) => self.identity_relation(),
            PlanNode::Full | PlanNode::Star(_) | PlanNode::Optional(_) => a,
            PlanNode::Plus(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(PlanNode::Optional(a)),
        }
    }

    pub(crate) fn immediate_relation(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            PlanNode::Empty => a,
            _ => self.intern_node(PlanNode::Immediate(a)),
        }
    }
}
