// What the schema promises everywhere: described, named alike, pages as Relay wants them.
import graphql from '@graphql-eslint/eslint-plugin'

export default [
  {
    files: ['**/*.graphqls'],
    languageOptions: {
      parser: graphql.parser,
      parserOptions: { graphQLConfig: { schema: ['./schema.graphqls', './graph/schema/*.graphqls'] } },
    },
    plugins: { '@graphql-eslint': graphql },
    rules: {
      '@graphql-eslint/known-argument-names': 'error',
      '@graphql-eslint/known-directives': 'error',
      '@graphql-eslint/known-type-names': 'error',
      '@graphql-eslint/naming-convention': [
        'error',
        {
          types: 'PascalCase',
          FieldDefinition: 'camelCase',
          InputValueDefinition: 'camelCase',
          DirectiveDefinition: 'camelCase',
          EnumValueDefinition: 'UPPER_CASE',
          'FieldDefinition[parent.name.value=Query]': { forbiddenPrefixes: ['get', 'list'] },
        },
      ],
      '@graphql-eslint/no-deprecated': 'error',
      '@graphql-eslint/no-hashtag-description': 'error',
      '@graphql-eslint/no-typename-prefix': 'off', // an algorithm's "algorithmVersion" may be called so
      '@graphql-eslint/no-unreachable-types': 'error',
      '@graphql-eslint/provided-required-arguments': 'error',
      '@graphql-eslint/relay-connection-types': 'error',
      '@graphql-eslint/relay-edge-types': ['error', { withEdgeSuffix: true, shouldImplementNode: false, listTypeCanWrapOnlyEdgeType: false }],
      '@graphql-eslint/relay-page-info': 'error',
      '@graphql-eslint/require-deprecation-reason': 'error',
      '@graphql-eslint/require-description': [
        'error',
        { types: true, FieldDefinition: true, InputValueDefinition: true, EnumValueDefinition: true, DirectiveDefinition: true, rootField: true },
      ],
      '@graphql-eslint/unique-enum-value-names': 'error',
      '@graphql-eslint/unique-field-definition-names': 'error',
      '@graphql-eslint/unique-type-names': 'error',
    },
  },
]
