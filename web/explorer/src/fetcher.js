import { getOperationAST, parse } from 'graphql';
import { createClient } from 'graphql-ws';

// createFetcher sends queries and mutations by POST, and subscriptions over
// one WebSocket that is opened anew when somebody else asks.
export function createFetcher(endpoint, session) {
  const url = new URL(endpoint, location.href);
  const socketURL = new URL(url);
  socketURL.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';

  let client = null;
  session.subscribe(() => {
    client?.dispose();
    client = null;
  });
  const socket = () =>
    (client ??= createClient({
      url: socketURL.href,
      lazy: true,
      retryAttempts: 3,
      // A refused token will be refused again.
      shouldRetry: problem => problem?.code !== 4403,
      connectionParams: () => ({ Authorization: `Bearer ${session.token}` }),
    }));

  const post = async (params, headers) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        Accept: 'application/graphql-response+json, application/json;q=0.9',
        'Content-Type': 'application/json',
        ...(session.token ? { Authorization: `Bearer ${session.token}` } : {}),
        ...headers,
      },
      body: JSON.stringify(params),
    });
    return response.json();
  };

  return (params, options) => {
    const document = options?.documentAST ?? parse(params.query);
    const operation = getOperationAST(document, params.operationName);
    if (operation?.operation === 'subscription') {
      return items(socket(), params);
    }
    return post(params, options?.headers);
  };
}

// items yields what a subscription sends; its end by an error or by a closed
// socket is told in the form of an answer, so that a person can read it.
async function* items(client, params) {
  try {
    yield* client.iterate(params);
  } catch (problem) {
    if (Array.isArray(problem)) {
      yield { errors: problem };
      return;
    }
    const message =
      typeof problem?.code === 'number'
        ? `The socket was closed: ${problem.code} ${problem.reason ?? ''}`.trim()
        : `The subscription ended: ${problem?.message ?? 'the server cannot be reached'}`;
    yield { errors: [{ message }] };
  }
}
