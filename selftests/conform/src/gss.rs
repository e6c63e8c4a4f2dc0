// SPDX-License-Identifier: GPL-2.0
//! RPCSEC_GSS version 1 (RFC 2203): credentials, verifiers and bodies written by
//! hand; tokens, checksums and encryption are a library's (Kerberos, RFC 4121).

use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
};

use libgssapi::{
    context::{ClientCtx, CtxFlags, SecurityContext},
    name::Name,
    oid::{GSS_MECH_KRB5, GSS_NT_HOSTBASED_SERVICE},
};

use crate::{
    frame::{words, Words},
    nfs3::opaque,
    results::{self, Results},
    rpc::{self, auth_none, Call, Kind, Status, NFS},
};

const FLAVOR: u32 = 6;

/// gss_proc: what a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Data = 0,
    Init = 1,
    Continue = 2,
    Destroy = 3,
}

/// What becomes of arguments and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// krb5: only the header of a call has a checksum.
    None = 1,
    /// krb5i: a checksum behind the body.
    Integrity = 2,
    /// krb5p: the body is encrypted.
    Privacy = 3,
}

impl Service {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "krb5",
            Self::Integrity => "krb5i",
            Self::Privacy => "krb5p",
        }
    }
}

/// A context that is established.
pub struct Context {
    mechanism: RefCell<ClientCtx>,
    handle: Vec<u8>,
    last: Cell<u32>,
}

fn text(what: &str) -> impl Fn(libgssapi::error::Error) -> String + '_ {
    move |e| format!("{what}: {e:?}")
}

/// The results of an INIT call.
pub struct Step {
    handle: Vec<u8>,
    pub major: u32,
    window: u32,
    token: Vec<u8>,
    verifier: Vec<u8>,
}

impl Step {
    /// From the Payload stream of a reply.
    pub fn decode(xid: u32, stream: &[u8]) -> Result<Self, String> {
        let mut stream = Words::new(stream);
        let mut verifier = (0, Vec::new());
        let status = rpc::verified_reply(&mut stream, xid, |flavor, body| {
            verifier = (flavor, body.to_vec());
            Ok(())
        })?;
        if status != Status::Success {
            return Err(format!("INIT: {status:?}"));
        }
        let handle = stream.opaque()?.to_vec();
        let (major, _minor, window) = (stream.word()?, stream.word()?, stream.word()?);
        let step = Self {
            handle,
            major,
            window,
            token: stream.opaque()?.to_vec(),
            verifier: verifier.1,
        };
        stream.end()?;
        if step.major == 0 && verifier.0 != FLAVOR {
            return Err(format!("a verifier of flavor {} for INIT", verifier.0));
        }
        Ok(step)
    }
}

/// A mechanism's context that is not established yet, and its first token.
fn begin(service: &str) -> Result<(ClientCtx, Vec<u8>), String> {
    let name =
        Name::new(service.as_bytes(), Some(GSS_NT_HOSTBASED_SERVICE)).map_err(text("name"))?;
    // Neither replay nor sequence: the order of checksums is not the calls'.
    let flags = CtxFlags::GSS_C_MUTUAL_FLAG;
    let mut mechanism = ClientCtx::new(None, name, flags, Some(GSS_MECH_KRB5));
    let token = mechanism.step(None, None).map_err(text("first token"))?;
    Ok((mechanism, token.ok_or("no first token")?.to_vec()))
}

/// A NULL call that asks for a context; the token is its only argument.
fn init_call(purpose: Purpose, handle: &[u8], token: &[u8]) -> Call {
    let mut call = Call::new(NFS, 3, 0, Kind::Context, opaque(token));
    call.items = vec![(4, token.len())];
    call.auth = credential(purpose, 0, Service::None, handle);
    call.auth.extend(&auth_none()[..8]);
    call
}

/// A first INIT call with a good token.
pub fn first_call(service: &str) -> Result<Call, String> {
    Ok(init_call(Purpose::Init, &[], &begin(service)?.1))
}

fn credential(purpose: Purpose, number: u32, service: Service, handle: &[u8]) -> Vec<u8> {
    let mut body = words(&[1, purpose as u32, number, service as u32]);
    body.extend(opaque(handle));
    [words(&[FLAVOR]), opaque(&body)].concat()
}

impl Context {
    /// Make one. Calls go out by a function that gives the XID and the Payload stream of the reply.
    pub fn establish(
        service: &str,
        mut exchange: impl FnMut(Call) -> Result<(u32, Vec<u8>), String>,
    ) -> Result<Self, String> {
        let (mut mechanism, mut token) = begin(service)?;
        let mut purpose = Purpose::Init;
        let mut handle = Vec::new();
        loop {
            let (xid, stream) = exchange(init_call(purpose, &handle, &token))?;
            let step = Step::decode(xid, &stream)?;
            if step.major > 1 {
                return Err(format!("INIT: GSS major status {:#x}", step.major));
            }
            handle = step.handle;
            let next = mechanism
                .step(Some(&step.token), None)
                .map_err(text("the server's token"))?;
            match next {
                Some(next) => (token, purpose) = (next.to_vec(), Purpose::Continue),
                None if step.major == 1 => return Err("the server wants one more token".into()),
                None => {
                    mechanism
                        .verify_mic(&words(&[step.window]), &step.verifier)
                        .map_err(text("checksum of the window"))?;
                    break;
                }
            }
        }
        Ok(Self {
            mechanism: RefCell::new(mechanism),
            handle,
            last: Cell::new(0),
        })
    }

    fn mic(&self, data: &[u8]) -> Result<Vec<u8>, String> {
        let made = self.mechanism.borrow_mut().get_mic(data);
        Ok(made.map_err(text("checksum"))?.to_vec())
    }

    /// Protect a call that has its XID.
    pub fn protect(self: &Rc<Self>, call: Call, service: Service) -> Result<(Call, Guard), String> {
        self.last.set(self.last.get() + 1);
        self.protect_as(call, Purpose::Data, service, self.last.get())
    }

    /// End it by a NULL call.
    pub fn destroy(self: &Rc<Self>, call: Call) -> Result<(Call, Guard), String> {
        self.last.set(self.last.get() + 1);
        self.protect_as(call, Purpose::Destroy, Service::None, self.last.get())
    }

    fn protect_as(
        self: &Rc<Self>,
        mut call: Call,
        purpose: Purpose,
        service: Service,
        number: u32,
    ) -> Result<(Call, Guard), String> {
        call.auth = credential(purpose, number, service, &self.handle);
        let checksum = self.mic(&[call.head(), call.auth.clone()].concat())?;
        call.auth.extend(words(&[FLAVOR]));
        call.auth.extend(opaque(&checksum));
        let body = [words(&[number]), std::mem::take(&mut call.args)].concat();
        match service {
            Service::None => call.args = body[4..].to_vec(),
            Service::Integrity => {
                call.args = [opaque(&body), opaque(&self.mic(&body)?)].concat();
                // Where they are now: behind the length and the number.
                call.items.iter_mut().for_each(|(at, _)| *at += 8);
            }
            Service::Privacy => {
                let wrapped = self.mechanism.borrow_mut().wrap(true, &body);
                call.args = opaque(&wrapped.map_err(text("encryption"))?);
                call.items.clear();
            }
        }
        let guard = Guard {
            context: self.clone(),
            service,
            number,
        };
        Ok((call, guard))
    }
}

/// What the reply to a call has to be protected with.
#[derive(Clone)]
pub struct Guard {
    context: Rc<Context>,
    service: Service,
    number: u32,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.service, self.number)
    }
}

impl Guard {
    /// The verifier of a reply: a checksum of the call's number.
    pub fn verify(&self, flavor: u32, body: &[u8]) -> Result<(), String> {
        if flavor != FLAVOR {
            return Err(format!("a verifier of flavor {flavor}"));
        }
        self.check(&words(&[self.number]), body, "the verifier of the reply")
    }

    fn check(&self, data: &[u8], mic: &[u8], what: &str) -> Result<(), String> {
        let mut mechanism = self.context.mechanism.borrow_mut();
        mechanism.verify_mic(data, mic).map_err(text(what))
    }

    /// The results in the Payload stream of a reply without chunks.
    pub fn results(&self, kind: Kind, xid: u32, stream: &[u8]) -> Result<Results, String> {
        let mut words = Words::new(stream);
        match rpc::verified_reply(&mut words, xid, |f, v| self.verify(f, v))? {
            Status::Success => {}
            other => return Err(format!("{other:?}")),
        }
        let body = self.open(words.rest)?;
        results::decode(kind, &mut Words::new(&body), &mut Default::default())
    }

    /// The results inside what comes after the header of a reply.
    pub fn open(&self, body: &[u8]) -> Result<Vec<u8>, String> {
        let mut rest = Words::new(body);
        let mut context = |e| format!("the body of the reply: {e}");
        let inside = match self.service {
            Service::None => return Ok(body.to_vec()),
            Service::Integrity => {
                let inside = rest.opaque().map_err(&mut context)?.to_vec();
                let mic = rest.opaque().map_err(&mut context)?;
                self.check(&inside, mic, "the checksum of the reply's body")?;
                inside
            }
            Service::Privacy => {
                let wrapped = rest.opaque().map_err(&mut context)?;
                let plain = self.context.mechanism.borrow_mut().unwrap(wrapped);
                plain
                    .map_err(text("decryption of the reply's body"))?
                    .to_vec()
            }
        };
        rest.end().map_err(&mut context)?;
        let mut words = Words::new(&inside);
        let number = words.word().map_err(&mut context)?;
        if number != self.number {
            return Err(format!("number {number} in the reply to {}", self.number));
        }
        Ok(words.rest.to_vec())
    }
}
