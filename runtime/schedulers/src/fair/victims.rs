//! Which containers give way to a starved job.
//!
//! Owns the search: for one request, the containers of one worker that make room for it without taking any
//! job below its share. Amounts and sizes are of one resource. Does not own who starves, nor how a victim is
//! preempted.

/// A job from which containers may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// What it holds, without what was marked before.
    pub usage: u64,
    /// Its fair share.
    pub share: u64,
    /// Whether its pool lets others take from it.
    pub yields: bool,
}

/// A running container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// Which of the holders.
    pub holder: usize,
    /// How much it holds.
    pub size: u64,
    /// It runs the master of its job: taken last.
    pub master: bool,
}

/// A worker with its containers, those to take first in front; masters are taken last wherever they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// What is free and kept for nobody.
    pub free: u64,
    /// What runs there and is not marked.
    pub containers: Vec<Container>,
}

/// Room for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// On which of the hosts.
    pub host: usize,
    /// Which of its containers go, by their places there; none when what is free is enough.
    pub taken: Vec<usize>,
}

/// The cluster while room is being made: what is taken for one request is gone for the next.
#[derive(Debug, Clone)]
pub struct Search {
    hosts: Vec<Host>,
    /// Which containers of a host were taken.
    gone: Vec<Vec<bool>>,
    holders: Vec<Holder>,
    /// The smallest request for which a host had no room. It never gets any, since nothing is ever given
    /// back.
    barren: Vec<u64>,
}

impl Search {
    /// A search that has taken nothing yet.
    pub fn new(hosts: Vec<Host>, holders: Vec<Holder>) -> Search {
        let gone = hosts.iter().map(|host| vec![false; host.containers.len()]).collect();
        let barren = vec![u64::MAX; hosts.len()];
        Search { hosts, gone, holders, barren }
    }

    /// Makes room for one request: on the first host where the fewest masters must go. Nothing is taken when
    /// no host can make room.
    pub fn make_room(&mut self, request: u64) -> Option<Room> {
        self.make_room_where(request, |_| true)
    }

    /// As [`Search::make_room`], on hosts that the claimant can use.
    pub fn make_room_where(&mut self, request: u64, usable: impl Fn(usize) -> bool) -> Option<Room> {
        self.make_room_of(request, usable, |_| true)
    }

    /// As [`Search::make_room_where`], of holders that may give to the claimant.
    pub fn make_room_of(
        &mut self,
        request: u64,
        usable: impl Fn(usize) -> bool,
        may_give: impl Fn(usize) -> bool,
    ) -> Option<Room> {
        let mut best: Option<(usize, Room)> = None;
        for host in 0..self.hosts.len() {
            if self.barren[host] <= request || !usable(host) {
                continue;
            }
            let Some((masters, taken)) = self.try_host(host, request, &may_give) else {
                if self.try_host(host, request, &|_| true).is_none() {
                    self.barren[host] = request;
                }
                continue;
            };
            if best.as_ref().is_none_or(|(fewest, _)| masters < *fewest) {
                best = Some((masters, Room { host, taken }));
            }
            if masters == 0 {
                break;
            }
        }
        let (_, room) = best?;
        self.take(&room, request);
        Some(room)
    }

    /// What would have to go on a host, and how many masters are among it.
    fn try_host(
        &self,
        host: usize,
        request: u64,
        may_give: &impl Fn(usize) -> bool,
    ) -> Option<(usize, Vec<usize>)> {
        let Host { free, containers } = &self.hosts[host];
        let (mut room, mut masters, mut taken) = (*free, 0, Vec::new());
        // What is taken here of each holder: few, so that a list is enough.
        let mut taken_of: Vec<(usize, u64)> = Vec::new();
        for master in [false, true] {
            for (place, container) in containers.iter().enumerate() {
                if room >= request {
                    return Some((masters, taken));
                }
                let marked = self.gone[host][place];
                let gives = container.master == master && may_give(container.holder);
                if marked || !gives || !self.may_take(container, &mut taken_of) {
                    continue;
                }
                room = room.saturating_add(container.size);
                masters += usize::from(master);
                taken.push(place);
            }
        }
        (room >= request).then_some((masters, taken))
    }

    /// Whether the holder stays at its share without this container and those taken here before; counts it
    /// then.
    fn may_take(&self, container: &Container, taken_of: &mut Vec<(usize, u64)>) -> bool {
        let holder = &self.holders[container.holder];
        let known = taken_of.iter().position(|(of, _)| *of == container.holder);
        let taken = known.map_or(0, |place| taken_of[place].1) + container.size;
        let stays = holder.usage.checked_sub(taken).is_some_and(|left| left >= holder.share);
        if !holder.yields || !stays {
            return false;
        }
        match known {
            Some(place) => taken_of[place].1 = taken,
            None => taken_of.push((container.holder, taken)),
        }
        true
    }

    /// Marks what goes. The room is the claimant's; what the last container gave beyond the request stays
    /// free.
    fn take(&mut self, room: &Room, request: u64) {
        let host = &mut self.hosts[room.host];
        for &place in &room.taken {
            let container = host.containers[place];
            self.gone[room.host][place] = true;
            host.free = host.free.saturating_add(container.size);
            self.holders[container.holder].usage -= container.size;
        }
        host.free = host.free.saturating_sub(request);
    }
}
