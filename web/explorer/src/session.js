// Who asks: one of the people that the server offers, or a token typed in.
// Tokens are kept in memory only; of a person the name is remembered.

const remembered = 'tallyard:explorer:person';

function read() {
  try {
    return localStorage.getItem(remembered);
  } catch {
    return null; // storage may be forbidden
  }
}

export function createSession(people) {
  let person = people.find(p => p.name === read()) ?? people[0] ?? null;
  let token = person?.token ?? '';
  const listeners = new Set();
  const changed = () => listeners.forEach(f => f());
  return {
    people,
    get person() {
      return person;
    },
    get token() {
      return token;
    },
    choose(name) {
      person = people.find(p => p.name === name) ?? null;
      token = person?.token ?? '';
      try {
        localStorage.setItem(remembered, name);
      } catch {
        // it is a convenience only
      }
      changed();
    },
    setToken(text) {
      token = text.trim();
      changed();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
