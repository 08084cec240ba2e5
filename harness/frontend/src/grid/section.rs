//! Interlocked sections: the fragments of a pixel go through theirs one at a time.

use std::collections::BTreeSet;
use std::rc::Rc;

use litmus::{InterlockEnd, InterlockOrder, Scope};
use rspirv::spirv::Op;

use crate::error::Refusal;
use crate::lift::{FindingKind, Identity};
use crate::section::{Sections, semantics};

use super::clock::Message;
use super::machine::{Doing, Here, Machine, Setup, Step, Stop, Workgroup};

/// What the fragments of a pixel have done.
#[derive(Clone, Debug, Default)]
pub(super) struct Pixel {
    /// Who is in its section.
    inside: Option<u32>,
    /// The primitives whose fragments keep nobody out any more.
    past: BTreeSet<u32>,
    /// What the last section released: whoever came before it is in that.
    released: Option<Rc<Message>>,
}

impl Setup {
    /// Whether fragments of one pixel go through their sections in any order.
    pub fn unordered(&self) -> bool {
        let unordered = |sections: Sections| sections.order == InterlockOrder::Unordered;
        self.sections.is_some_and(unordered) && self.grid[2] > 1
    }
}

impl Machine<'_> {
    /// An end of a section.
    pub(super) fn section(&mut self, here: &mut Here<'_>, end: InterlockEnd) -> Step<()> {
        let sections = Sections::here(self.setup.sections, end, self.setup.stage)?;
        let me = here.me();
        let next = match me.section.past(end) {
            Ok(next) => next,
            Err(what) => {
                self.finding(here, FindingKind::UndefinedBehaviour, what.to_owned());
                return Err(Stop::Ended);
            }
        };
        self.notes.extend(sections.note.map(str::to_owned));
        self.events += 1;
        match end {
            InterlockEnd::Begin if !self.may_enter(here.me().identity, sections) => {
                return Err(self.waits(here));
            }
            InterlockEnd::Begin => self.enters(here),
            InterlockEnd::End => {
                here.me().brings(Scope::FragmentInterlock, semantics(end), true);
                let message = here.me().message(Scope::FragmentInterlock, semantics(end));
                self.pixel(here.me().identity).released = Some(message);
                self.keeps_nobody_out(here.me().identity);
            }
        }
        here.me().section = next;
        self.changes += 1;
        here.frame()?.at += 1;
        Ok(())
    }

    fn pixel(&mut self, of: Identity) -> &mut Pixel {
        let [x, y, _] = of.workgroup;
        self.pixels.entry((x, y)).or_default()
    }

    /// Whether nobody is in the section of a fragment's pixel who is to come before it.
    fn may_enter(&mut self, me: Identity, sections: Sections) -> bool {
        let [_, _, primitive] = me.workgroup;
        let pixel = self.pixel(me);
        pixel.inside.is_none_or(|inside| inside == primitive)
            && (sections.order == InterlockOrder::Unordered
                || (0..primitive).all(|earlier| pixel.past.contains(&earlier)))
    }

    fn enters(&mut self, here: &mut Here<'_>) {
        let me = here.me();
        let pixel = self.pixel(me.identity);
        pixel.inside = Some(me.identity.workgroup[2]);
        if let Some(message) = pixel.released.clone() {
            me.take(&message, Scope::FragmentInterlock, semantics(InterlockEnd::Begin));
        }
        me.shows(Scope::FragmentInterlock, semantics(InterlockEnd::Begin));
        self.open |= self.setup.unordered();
    }

    /// A fragment is past its section, or has ended.
    pub(super) fn keeps_nobody_out(&mut self, me: Identity) {
        if self.setup.sections.is_some() {
            let primitive = me.workgroup[2];
            let pixel = self.pixel(me);
            pixel.inside.take_if(|inside| *inside == primitive);
            pixel.past.insert(primitive);
        }
    }

    /// Lets a fragment go on that waits for its section and may enter it now.
    pub(super) fn entered(&mut self, workgroup: &mut Workgroup) -> Result<bool, Refusal> {
        let mut met = false;
        for index in 0..workgroup.invocations.len() {
            let Some((_, Op::BeginInvocationInterlockEXT, site)) = self.waits_at(workgroup, index) else {
                continue;
            };
            let mut here = Here { workgroup, index };
            here.me().doing = Doing::Runs;
            match self.section(&mut here, InterlockEnd::Begin) {
                Ok(()) => met = true,
                Err(Stop::Refused(problem)) => return Err(problem.at(self.place(site))),
                Err(Stop::Waits | Stop::Ended) => {}
            }
        }
        Ok(met)
    }
}
