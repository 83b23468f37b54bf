//! Victim search for one request: finds containers of one worker whose preemption makes room, without taking
//! any job below its share.

/// A job whose containers may be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Usage without containers that are already marked for preemption.
    pub usage: u64,
    /// Fair share.
    pub share: u64,
    /// Whether its pool allows preemption.
    pub preemptable: bool,
}

/// A running container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// Index of its holder.
    pub holder: usize,
    pub size: u64,
    /// Runs the master of its job; preempted last.
    pub master: bool,
}

/// A worker with its containers in preemption order. Masters come last regardless of position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Free and not reserved.
    pub free: u64,
    /// Running and not marked for preemption.
    pub containers: Vec<Container>,
}

/// Room for one request on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Index of the host.
    pub host: usize,
    /// Indexes of the containers to preempt; empty if the free amount suffices.
    pub taken: Vec<usize>,
}

/// The cluster during a search. Containers taken for one request are not available to the next.
#[derive(Debug, Clone)]
pub struct Search {
    hosts: Vec<Host>,
    /// Taken containers, by host.
    taken: Vec<Vec<bool>>,
    holders: Vec<Holder>,
    /// The smallest request that failed on each host. Larger ones fail too, since nothing is released.
    failed: Vec<u64>,
}

impl Search {
    pub fn new(hosts: Vec<Host>, holders: Vec<Holder>) -> Search {
        let taken = hosts
            .iter()
            .map(|host| vec![false; host.containers.len()])
            .collect();
        let failed = vec![u64::MAX; hosts.len()];
        Search {
            hosts,
            taken,
            holders,
            failed,
        }
    }

    /// Makes room for one request on the first host with the fewest masters to preempt. Returns `None` if no
    /// host has room; nothing is taken then.
    pub fn make_room(&mut self, request: u64) -> Option<Room> {
        self.make_room_where(request, |_| true)
    }

    /// As [`Search::make_room`], on hosts that satisfy `usable`.
    pub fn make_room_where(
        &mut self,
        request: u64,
        usable: impl Fn(usize) -> bool,
    ) -> Option<Room> {
        self.make_room_of(request, usable, |_| true)
    }

    /// As [`Search::make_room_where`], preempting only holders that satisfy `may_give`.
    pub fn make_room_of(
        &mut self,
        request: u64,
        usable: impl Fn(usize) -> bool,
        may_give: impl Fn(usize) -> bool,
    ) -> Option<Room> {
        let mut best: Option<(usize, Room)> = None;
        for host in 0..self.hosts.len() {
            if self.failed[host] <= request || !usable(host) {
                continue;
            }
            let Some((masters, taken)) = self.try_host(host, request, &may_give) else {
                if self.try_host(host, request, &|_| true).is_none() {
                    self.failed[host] = request;
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

    /// Returns the number of masters and the containers to preempt on a host.
    fn try_host(
        &self,
        host: usize,
        request: u64,
        may_give: &impl Fn(usize) -> bool,
    ) -> Option<(usize, Vec<usize>)> {
        let Host { free, containers } = &self.hosts[host];
        let mut room = *free;
        let mut masters = 0;
        let mut taken = Vec::new();
        // Amount taken from each holder here. A list suffices, since there are few.
        let mut taken_of: Vec<(usize, u64)> = Vec::new();
        for master in [false, true] {
            for (place, container) in containers.iter().enumerate() {
                if room >= request {
                    return Some((masters, taken));
                }
                let marked = self.taken[host][place];
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

    /// Whether the holder keeps its share without this container and those taken before; if so, counts it.
    fn may_take(&self, container: &Container, taken_of: &mut Vec<(usize, u64)>) -> bool {
        let holder = &self.holders[container.holder];
        let known = taken_of.iter().position(|(of, _)| *of == container.holder);
        let taken = known.map_or(0, |place| taken_of[place].1) + container.size;
        let stays = holder
            .usage
            .checked_sub(taken)
            .is_some_and(|left| left >= holder.share);
        if !holder.preemptable || !stays {
            return false;
        }
        match known {
            Some(place) => taken_of[place].1 = taken,
            None => taken_of.push((container.holder, taken)),
        }
        true
    }

    /// Marks the victims. Anything that the last one frees beyond the request stays free.
    fn take(&mut self, room: &Room, request: u64) {
        let host = &mut self.hosts[room.host];
        for &place in &room.taken {
            let container = host.containers[place];
            self.taken[room.host][place] = true;
            host.free = host.free.saturating_add(container.size);
            self.holders[container.holder].usage -= container.size;
        }
        host.free = host.free.saturating_sub(request);
    }
}
