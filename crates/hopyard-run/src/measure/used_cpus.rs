//! The CPUs of this machine that a run uses.

/// Something of the CPUs that the client's flows may run on, of those of the server's, and of all that this process and its workers may
/// run on.
#[derive(Debug, Clone, Default)]
pub(super) struct UsedCpus<T> {
    pub(super) client: T,
    pub(super) server: T,
    pub(super) allowed: T,
}

impl<T> UsedCpus<T> {
    /// Something else of each of them.
    pub(super) fn map<'a, U>(&'a self, of: impl Fn(&'a T) -> U) -> UsedCpus<U> {
        UsedCpus {
            client: of(&self.client),
            server: of(&self.server),
            allowed: of(&self.allowed),
        }
    }
}
